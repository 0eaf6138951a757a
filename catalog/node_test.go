package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSingleNodes(t *testing.T) {
	t.Parallel()
	class := func(name string, labels map[string]string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Handler: name,
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": name}},
		}
	}
	node := func(name, pool, disk string, status corev1.ConditionStatus, handlers ...string) *corev1.Node {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool, "disk": disk}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
		}
		for _, h := range handlers {
			n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: h})
		}
		return n
	}
	c := Build(
		[]*nodev1.RuntimeClass{class("a", nil), class("b", nil), class("scaled", map[string]string{LabelAvailability: "autoscaled"})},
		[]*corev1.Node{
			node("a1", "a", "ssd", corev1.ConditionTrue, "a"),
			node("b1", "b", "ssd", corev1.ConditionFalse, "b"),
			node("b2", "b", "hdd", corev1.ConditionTrue, "b"),
			node("silent", "b", "tape", corev1.ConditionTrue),
		})
	for name, want := range map[string][]string{"a1": {"a"}, "b1": {"b"}, "silent": {"b"}, "unknown": nil} {
		if diff := cmp.Diff(want, c.Pools(name)); diff != "" {
			t.Errorf("pools of %s: %s", name, diff)
		}
	}
	for name, want := range map[string]bool{"a1": true, "b1": true, "silent": false, "unknown": false} {
		if c.Reports(name) != want {
			t.Errorf("reports of %s: %t", name, !want)
		}
	}
	for range 2 { // worked out, and then remembered
		for disk, want := range map[string][]string{"ssd": {"a", "scaled"}, "hdd": {"b", "scaled"}, "tape": {"b", "scaled"}, "none": {"scaled"}} {
			if diff := cmp.Diff(want, c.Fits(map[string]string{"disk": disk})); diff != "" {
				t.Errorf("fits %s: %s", disk, diff)
			}
		}
	}
	if got := c.Fits(map[string]string{"disk": "ssd", "zone": "x"}); !cmp.Equal(got, []string{"scaled"}) {
		t.Errorf("every label counts: %v", got)
	}
}
