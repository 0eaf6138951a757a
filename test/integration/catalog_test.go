package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func TestRuntimeClassThatComesAndGoes(t *testing.T) {
	t.Parallel()
	const name = "kata-arrives"
	n := untrusted(t)
	pod := newPod(labelled("workload-profile=arrives")) // kata-arrives, then gvisor
	n.eventually(pod, "gvisor")

	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"example.com/pool": name}},
		Status:     corev1.NodeStatus{RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: ""}, {Name: name}}},
	}
	if err := controlplane.CreateNode(t.Context(), shared.Client, node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	classes := clients.NodeV1().RuntimeClasses()
	_, err := classes.Create(t.Context(), &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name,
		Overhead:   &nodev1.Overhead{PodFixed: newPod(overhead("100m", "100Mi")).Spec.Overhead},
		Scheduling: &nodev1.Scheduling{NodeSelector: node.Labels},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	n.eventually(pod, name)
	created := n.admitted(pod)
	wantPlacement(t, created, name)
	n.scheduled(created)

	if err := classes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.eventually(pod, "gvisor")
	wantPlacement(t, n.admitted(pod), "gvisor")
}

func TestPoolThatGoesDownIsPassedOver(t *testing.T) {
	t.Parallel()
	const node = "kata-first-1"
	n := untrusted(t)
	pod := newPod(labelled("workload-profile=failover")) // kata-first, then kata-fc
	kubectl := func(args ...string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if out, err := shared.Kubectl(t.Context(), args...); err != nil {
				t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
	steps := []struct {
		name     string
		down, up func(*testing.T)
	}{
		{"NotReady", setReady(node, corev1.ConditionFalse), setReady(node, corev1.ConditionTrue)},
		{"unknown", setReady(node, corev1.ConditionUnknown), setReady(node, corev1.ConditionTrue)},
		{"cordoned", kubectl("cordon", node), kubectl("uncordon", node)},
		{"without the handler", setHandlers(node, "runc"), setHandlers(node, "kata-first")},
		{"tainted", kubectl("taint", "node", node, "example.com/repair=yes:NoExecute"), kubectl("taint", "node", node, "example.com/repair-")},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			n := n.in(t)
			n.eventually(pod, "kata-first")
			step.down(t)
			n.eventually(pod, "kata-fc")
			wantPlacement(t, n.admitted(pod), "kata-fc")
			step.up(t)
			n.eventually(pod, "kata-first")
			wantPlacement(t, n.admitted(pod), "kata-first")
		})
	}
}

// setHandlers is what a kubelet reports of its container runtime, which the API server has to keep.
func setHandlers(name string, handlers ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		var want []corev1.NodeRuntimeHandler
		for _, handler := range handlers {
			want = append(want, corev1.NodeRuntimeHandler{Name: handler, Features: &corev1.NodeRuntimeHandlerFeatures{
				RecursiveReadOnlyMounts: ptr.To(true), UserNamespaces: ptr.To(true),
			}})
		}
		got := updateStatus(t, name, func(status *corev1.NodeStatus) { status.RuntimeHandlers = want })
		if diff := cmp.Diff(want, got.RuntimeHandlers); diff != "" {
			t.Errorf("status.runtimeHandlers of node %s (-want +got):\n%s", name, diff)
		}
	}
}

// setReady is what a kubelet, or in its stead the node lifecycle controller, reports.
func setReady(name string, status corev1.ConditionStatus) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		updateStatus(t, name, func(node *corev1.NodeStatus) {
			for i := range node.Conditions {
				if c := &node.Conditions[i]; c.Type == corev1.NodeReady {
					c.Status, c.LastTransitionTime = status, metav1.Now()
				}
			}
		})
	}
}

// updateStatus returns the status as it is stored.
func updateStatus(t *testing.T, name string, change func(*corev1.NodeStatus)) corev1.NodeStatus {
	t.Helper()
	var node *corev1.Node
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if node, err = clients.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		change(&node.Status)
		node, err = clients.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return node.Status
}
