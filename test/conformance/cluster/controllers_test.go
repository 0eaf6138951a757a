package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
)

// TestDenialReadsThroughAController: the event of a controller, which is all that its
// user sees, says who refused the pod, for which field, and what to do.
func TestDenialReadsThroughAController(t *testing.T) {
	t.Parallel()
	template := func(name string, edit func(*corev1.PodSpec)) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
		labels := map[string]string{"app": name}
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}}
		edit(&spec)
		return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: conformance.Untrusted, Name: name}
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta("on-the-hosts-network")}
	deployment.Spec.Selector, deployment.Spec.Template = template(deployment.Name, func(s *corev1.PodSpec) { s.HostNetwork = true })
	daemonSet := &appsv1.DaemonSet{ObjectMeta: meta("everywhere")}
	daemonSet.Spec.Selector, daemonSet.Spec.Template = template(daemonSet.Name, func(*corev1.PodSpec) {})
	for name, test := range map[string]struct {
		object client.Object
		reason string
		want   []string
	}{
		"ReplicaSet": {deployment, "FailedCreate", []string{"runtimeclass-router: ", "spec.hostNetwork", "use the pod network"}},
		"DaemonSet":  {daemonSet, "FailedCreate", []string{"runtimeclass-router: ", "metadata.ownerReferences", "add nodeSelector example.com/gvisor: true to the DaemonSet's template"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := shared.Client.Create(t.Context(), test.object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := shared.Client.Delete(context.WithoutCancel(t.Context()), test.object); err != nil {
					t.Error(err)
				}
			})
			message := event(t, name, test.object.GetName(), test.reason)
			for _, part := range test.want {
				if !strings.Contains(message, part) {
					t.Errorf("the event lacks %q: %s", part, message)
				}
			}
			if strings.Contains(message, "\n") {
				t.Errorf("more than one line: %q", message)
			}
		})
	}
}

// event waits for an event of that reason about an object whose name begins so.
func event(t *testing.T, kind, name, reason string) (message string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		if err := shared.Client.List(ctx, &events, client.InNamespace(conformance.Untrusted)); err != nil {
			return false, err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && strings.HasPrefix(e.InvolvedObject.Name, name) && e.Reason == reason {
				message = e.Message
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("no event %s of %s %s: %v", reason, kind, name, err)
	}
	return message
}

// TestFinalizerOfARoutedPodCanBeRemoved: the update that ends a Job's pod goes through,
// and the pod is what it was.
func TestFinalizerOfARoutedPodCanBeRemoved(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: conformance.Untrusted, GenerateName: "tracked-", Finalizers: []string{"example.com/tracking"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}},
	}
	if err := shared.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	boundTo(t, pod) // the scheduler's own update is in
	if err := shared.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	before := pod.DeepCopy()
	pod.Finalizers = nil
	if err := shared.Client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatalf("the finalizer stays: %v", err)
	}
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the pod is still there: %v", err)
	}
}
