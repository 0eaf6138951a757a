package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func TestLabelsOfAPodCanBeUpdated(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	created := n.admitted(newPod())
	updated := n.update(created, labelled("trust=trusted", "workload-profile=kernel-features", "example.com/x=y"))
	if updated.Labels[catalog.LabelTrust] != "trusted" || updated.Labels["example.com/x"] != "y" {
		t.Errorf("labels %v: the update is not stored", updated.Labels)
	}
	wantPlacement(t, updated, "gvisor")
	if got, want := updated.Annotations[catalog.AnnotationReason], created.Annotations[catalog.AnnotationReason]; got != want {
		t.Errorf("the update was patched: reason %q, was %q", got, want)
	}
}

// Its spec may still change, and a class patch would be refused along with that.
func TestSchedulingGatedPodCanBeUpdated(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	created := n.admitted(newPod(gated))
	wantPlacement(t, created, "gvisor")
	updated := n.update(created, labelled("example.com/x=y"))
	wantPlacement(t, updated, "gvisor")
	released := n.update(updated, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	wantPlacement(t, released, "gvisor")
	n.scheduled(released)
}

// A pod from before its namespace was labelled runs on, and its owner may work on it.
func TestPodFromBeforeEnforcingCanBeUpdated(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	pods := []*corev1.Pod{n.admitted(newPod()), n.admitted(newPod(gated))}
	n.relabel(catalog.LabelTrust + "=untrusted")
	n.eventually(newPod(), "gvisor")
	for _, pod := range pods {
		updated := n.update(pod, labelled("example.com/x=y"))
		wantPlacement(t, updated, "")
		wantUnpatched(t, updated)
	}
}

// update changes a pod as it is by now.
func (n *namespace) update(pod *corev1.Pod, change trait) *corev1.Pod {
	n.t.Helper()
	var updated *corev1.Pod
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := clients.CoreV1().Pods(n.name).Get(n.t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(current)
		updated, err = clients.CoreV1().Pods(n.name).Update(n.t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		n.t.Fatalf("update pod: %v", err)
	}
	return updated
}
