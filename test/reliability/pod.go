package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// moved labels the pods that the policy of the run moves to another class.
const moved = "example.com/moved"

// shapes are the pods that are created in turn, in a namespace that is untrusted. Each has
// one class that it must come out with; they are those of examples/cluster.yaml.
var shapes = []struct {
	labels map[string]string
	asked  string // a class
	want   string
}{
	{want: "gvisor"},
	{labels: map[string]string{catalog.LabelProfile: "syscall-heavy"}, want: "kata-fc"},
	{labels: map[string]string{catalog.LabelProfile: "kernel-features"}, want: "kata-qemu"},
	{labels: map[string]string{catalog.LabelTrust: "trusted"}, want: "gvisor"}, // which it may not say
	{asked: "crun", want: "gvisor"}, // which it may not have
	{labels: map[string]string{moved: "true"}, want: "gvisor"},
}

// newPod returns the i-th pod and the class that is expected; isMoved says that the policy
// has a say.
func newPod(i int64) (pod *corev1.Pod, want string, isMoved bool) {
	shape := &shapes[i%int64(len(shapes))]
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Labels: shape.labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:1"}}},
	}
	if shape.asked != "" {
		pod.Spec.RuntimeClassName = &shape.asked
	}
	if i%10 == 0 { // the others' decisions are remembered
		pod.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprintf("example.com/team-%d", i), Operator: corev1.TolerationOpExists}}
	}
	return pod, shape.want, shape.labels[moved] != ""
}

// check returns what is wrong with a pod that was admitted, if its class must be one of
// those: a pod without its sandbox is worse than one that is refused.
func check(pod *corev1.Pod, want []string) error {
	class := ptr.Deref(pod.Spec.RuntimeClassName, "")
	switch {
	case !slices.Contains(want, class):
		return fmt.Errorf("runtime class %q, want one of %q", class, want)
	case pod.Spec.NodeSelector["example.com/pool"] != class:
		return fmt.Errorf("runtime class %q with node selector %v", class, pod.Spec.NodeSelector)
	case len(pod.Spec.Overhead) == 0:
		return fmt.Errorf("runtime class %q without its overhead", class)
	case pod.Annotations[catalog.AnnotationPolicyRevision] == "" || pod.Annotations[catalog.AnnotationFallback] != "":
		return fmt.Errorf("runtime class %q, and no policy says that it decided so", class)
	}
	return nil
}
