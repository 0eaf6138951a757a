package integration

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// placement is the four fields of a pod that routing owns.
type placement struct {
	Class        string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	Overhead     map[corev1.ResourceName]int64 // in thousandths, however they are spelt
}

// placementOf leaves out the tolerations that the API server gives every pod.
func placementOf(pod *corev1.Pod) placement {
	p := placement{Class: classOf(pod), NodeSelector: pod.Spec.NodeSelector, Overhead: thousandths(pod.Spec.Overhead)}
	for _, t := range pod.Spec.Tolerations {
		if t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable {
			p.Tolerations = append(p.Tolerations, t)
		}
	}
	return p
}

func thousandths(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for name, quantity := range list {
		out[name] = quantity.MilliValue()
	}
	return out
}

// wantPlacement fails unless the pod has everything of the class, nothing of any
// other, and the traits of its own. Class "" is the node's default.
func wantPlacement(t *testing.T, pod *corev1.Pod, class string, own ...trait) {
	t.Helper()
	want := placementOf(newPod(own...))
	want.Class = class
	if class != "" {
		object, err := clients.NodeV1().RuntimeClasses().Get(t.Context(), class, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if object.Overhead != nil {
			want.Overhead = thousandths(object.Overhead.PodFixed)
		}
		if object.Scheduling != nil {
			if want.NodeSelector == nil {
				want.NodeSelector = map[string]string{}
			}
			maps.Copy(want.NodeSelector, object.Scheduling.NodeSelector)
			want.Tolerations = append(want.Tolerations, object.Scheduling.Tolerations...)
		}
	}
	inAnyOrder := cmpopts.SortSlices(func(a, b corev1.Toleration) bool { return a.String() < b.String() })
	if diff := cmp.Diff(want, placementOf(pod), inAnyOrder, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("placement of %s (-want +got):\n%s", pod.Name, diff)
	}
}

// wantPatched fails unless the pod says that the webhook patched it.
func wantPatched(t *testing.T, pod *corev1.Pod, trust string) {
	t.Helper()
	if got := pod.Annotations[catalog.AnnotationTrust]; got != trust {
		t.Errorf("annotation %s: %q, want %q", catalog.AnnotationTrust, got, trust)
	}
	for _, key := range []string{catalog.AnnotationReason, catalog.AnnotationPolicyRevision} {
		if pod.Annotations[key] == "" {
			t.Errorf("annotation %s is missing", key)
		}
	}
}

// wantUnpatched fails if the pod carries any of the webhook's annotations: whatever
// it patches, it annotates.
func wantUnpatched(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ours := []string{catalog.AnnotationTrust, catalog.AnnotationReason, catalog.AnnotationPolicyRevision}
	for key := range pod.Annotations {
		if slices.Contains(ours, key) {
			t.Errorf("annotation %s says that the pod was patched", key)
		}
	}
}
