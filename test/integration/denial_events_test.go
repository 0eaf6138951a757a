package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// ownedBy makes a pod one of a ReplicaSet's.
func ownedBy(name string, uid types.UID) trait {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: uid, Controller: ptr.To(true)}}
	}
}

// denialEvents are the Events of this product in the namespace, by the object that they are of.
func (n *namespace) denialEvents(ctx context.Context) (map[types.UID][]eventsv1.Event, error) {
	list, err := clients.EventsV1().Events(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[types.UID][]eventsv1.Event{}
	for _, event := range list.Items {
		if event.ReportingController == "runtimeclass-router" {
			found[event.Regarding.UID] = append(found[event.Regarding.UID], event)
		}
	}
	return found, nil
}

// awaitDenialEvent waits for the first Event on an object.
func (n *namespace) awaitDenialEvent(uid types.UID) eventsv1.Event {
	n.t.Helper()
	var found []eventsv1.Event
	poll(n.t, func(ctx context.Context) (bool, error) {
		events, err := n.denialEvents(ctx)
		found = events[uid]
		return len(found) > 0, err
	}, func() string { return fmt.Sprintf("no Event on the object %s in %s", uid, n.name) })
	return found[0]
}

// The developer of a Deployment reads in `kubectl describe` why it has no pods; and however
// often the controller tries, Events are few.
func TestADenialIsAnEventOnTheReplicaSet(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	app := map[string]string{"example.com/app": "app"}
	pod := newPod(hostNetwork)
	if _, err := clients.AppsV1().Deployments(n.name).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var set appsv1.ReplicaSet
	poll(t, func(ctx context.Context) (bool, error) {
		sets, err := clients.AppsV1().ReplicaSets(n.name).List(ctx, metav1.ListOptions{})
		if err != nil || len(sets.Items) == 0 {
			return false, err
		}
		set = sets.Items[0]
		return true, nil
	}, func() string { return "the Deployment has no ReplicaSet" })

	event := n.awaitDenialEvent(set.UID)
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: n.name, Name: set.Name, UID: set.UID}
	if event.Regarding != about || event.Reason != "RuntimeDenied" || event.Type != corev1.EventTypeWarning ||
		!strings.HasPrefix(event.Note, "no sandbox here can run this pod (spec.hostNetwork)") {
		t.Errorf("got %+v", event)
	}
	said, err := shared.Kubectl(t.Context(), "describe", "replicaset", "-n", n.name, set.Name)
	if err != nil || !strings.Contains(said, "RuntimeDenied") {
		t.Errorf("kubectl describe: %v\n%s", err, said)
	}

	for range 100 {
		wantDenied(t, n.create(newPod(hostNetwork, ownedBy(set.Name, set.UID))), http.StatusForbidden)
	}
	// What is told of a later one has been told of these.
	wantDenied(t, n.create(newPod(hostNetwork, ownedBy("later", "later"))), http.StatusForbidden)
	n.awaitDenialEvent("later")
	events, err := n.denialEvents(t.Context())
	if err != nil || len(events[set.UID]) > 2 { // a minute may have gone by since the first
		t.Errorf("%d Events of a hundred denials, %v", len(events[set.UID]), err)
	}
}

func TestADryRunIsNoEvent(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	wantDenied(t, n.dryRun(newPod(hostNetwork, ownedBy("app", "dry-run"))), http.StatusForbidden)
	wantDenied(t, n.create(newPod(hostNetwork, ownedBy("app", "in-earnest"))), http.StatusForbidden)
	n.awaitDenialEvent("in-earnest")
	if events, err := n.denialEvents(t.Context()); err != nil || len(events) != 1 {
		t.Errorf("got %v, %v", events, err)
	}
}

// A policy that fails refuses pods too, and their developer sees it no more than a denial.
func TestAPolicyErrorIsAnEvent(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	wantDenied(t, n.create(newPod(conflict, ownedBy("app", "failed"))), http.StatusInternalServerError)
	if event := n.awaitDenialEvent("failed"); event.Reason != "RuntimeUndecided" || !strings.Contains(event.Note, "policy error") {
		t.Errorf("got %+v", event)
	}
}
