package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodLandsOnThePoolOfItsClass(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ trust, profile, pool string }{
		"crun":      {"trusted", "general", "crun"},
		"heavy":     {"trusted", "heavy", "heavy"},
		"gvisor":    {"untrusted", "general", "gvisor"},
		"kata-fc":   {"untrusted", "syscall-heavy", "kata-fc"},
		"kata-qemu": {"untrusted", "kernel-features", "kata-qemu"},
	}
	for class, test := range tests {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, "trust="+test.trust)
			pod := n.admitted(newPod(labelled("workload-profile=" + test.profile)))
			wantPlacement(t, pod, class)
			if node := n.scheduled(pod); node.Labels["example.com/pool"] != test.pool {
				t.Errorf("bound to node %s of pool %s, want %s", node.Name, node.Labels["example.com/pool"], test.pool)
			}
		})
	}
}

// A pod that asked for another runtime's pool is not left between the two.
func TestReplacedPodLandsOnThePoolOfItsNewClass(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	pod := n.admitted(newPod(class("heavy")))
	if node := n.scheduled(pod); node.Labels["example.com/pool"] != "gvisor" {
		t.Errorf("bound to node %s of pool %s, want gvisor", node.Name, node.Labels["example.com/pool"])
	}
}

func TestPodOfAPoolWithoutAReadyNodeWaitsWithAWarning(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	for name, ask := range map[string]trait{"routed": labelled("workload-profile=empty"), "asked for": class("kata-clh")} {
		t.Run(name, func(t *testing.T) {
			n := n.in(t)
			answer := n.create(newPod(ask))
			pod := answer.mustPod(t)
			wantPlacement(t, pod, "kata-clh")
			const want = "runtimeclass-router: no node of runtime class kata-clh is ready: the pod waits until one is"
			if !mentions(answer.warnings, want) {
				t.Errorf("warnings %q, want %q", answer.warnings, want)
			}
			n.unschedulable(pod)
		})
	}
}

// unschedulable waits until the scheduler says that there is no node for the pod.
func (n *namespace) unschedulable(pod *corev1.Pod) {
	n.t.Helper()
	var last *corev1.Pod
	poll(n.t, func(ctx context.Context) (_ bool, err error) {
		if last, err = clients.CoreV1().Pods(n.name).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		for _, c := range last.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return true, nil
			}
		}
		return false, nil
	}, func() string { return "the scheduler has not said that pod " + pod.Name + " must wait" })
	if last.Spec.NodeName != "" {
		n.t.Errorf("bound to %s", last.Spec.NodeName)
	}
}

// scheduled waits until the pod is bound, and returns the node.
func (n *namespace) scheduled(pod *corev1.Pod) *corev1.Node {
	n.t.Helper()
	var last *corev1.Pod
	poll(n.t, func(ctx context.Context) (done bool, err error) {
		last, err = clients.CoreV1().Pods(n.name).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && last.Spec.NodeName != "", err
	}, func() string { return "pod " + pod.Name + " is not bound" })
	node, err := clients.CoreV1().Nodes().Get(n.t.Context(), last.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return node
}
