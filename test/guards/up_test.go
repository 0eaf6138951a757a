package guards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestTheWebhookChoosesAnew: of the fallback's choice nothing is left.
func TestTheWebhookChoosesAnew(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	for profile, want := range map[string]string{"syscall-heavy": "kata-fc", "kernel-features": "kata-qemu", "general": "gvisor"} {
		got := create(t, untrusted, newPod(labelled(catalog.LabelProfile, profile)))
		if classOf(got) != want {
			t.Errorf("%s: class %q, want %s", profile, classOf(got), want)
		}
		if value, ok := got.Annotations[catalog.AnnotationFallback]; ok {
			t.Errorf("%s: the annotation of the fallback stays: %q", profile, value)
		}
		if diff := cmp.Diff(map[string]string{poolLabel: want}, got.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: nodeSelector (-want +got):\n%s", profile, diff)
		}
		var tolerated []string
		for _, toleration := range got.Spec.Tolerations {
			if strings.HasPrefix(toleration.Key, "example.com/") {
				tolerated = append(tolerated, toleration.Value)
			}
		}
		if wanted := strings.Split(want, "-")[:1]; !cmp.Equal(wanted, tolerated) {
			t.Errorf("%s: tolerations of %v, want %v", profile, tolerated, wanted)
		}
		class, err := clients.NodeV1().RuntimeClasses().Get(t.Context(), want, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if memory, wanted := got.Spec.Overhead[corev1.ResourceMemory], class.Overhead.PodFixed[corev1.ResourceMemory]; memory.Cmp(wanted) != 0 {
			t.Errorf("%s: overhead %v, want %v", profile, got.Spec.Overhead, class.Overhead.PodFixed)
		}
	}
	got := create(t, untrusted, newPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{poolLabel: "kata-clh"} }))
	if classOf(got) != "kata-clh" {
		t.Errorf("a pod that selects a pool gets class %q: the fallback must not stand in the way", classOf(got))
	}
}

// TestWhatTheWebhookSees of a pod that the fallback gave a class: the class and the
// annotation, and nothing merged yet. Without the fallback, nothing at all.
func TestWhatTheWebhookSees(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	first := newMeddler(t, "aa-first", untrusted, func(*corev1.Pod) []stack.PatchOperation { return nil })
	first.Forget()
	create(t, untrusted, newPod(labelled(catalog.LabelProfile, "syscall-heavy")))
	seen := first.Forget()
	if len(seen) == 0 {
		t.Fatal("not called")
	}
	want := ""
	if canFallBack(shared.Release) {
		want = "gvisor"
	}
	if got := seen[0]; classOf(&got) != want || got.Annotations[catalog.AnnotationFallback] != want ||
		len(got.Spec.Overhead) > 0 || len(got.Spec.NodeSelector) > 0 {
		t.Errorf("class %q, annotations %v, overhead %v, nodeSelector %v", classOf(&got), got.Annotations, got.Spec.Overhead, got.Spec.NodeSelector)
	}
}

// TestLaterWebhook: what another webhook does after ours is seen, with the backstop and
// without it.
func TestLaterWebhook(t *testing.T) {
	for name, test := range map[string]struct {
		patch    func(*corev1.Pod) []stack.PatchOperation
		want     string // of /validate-pod
		backstop string // of the backstop; "" where it leaves it to the webhook
	}{
		"class": {func(p *corev1.Pod) []stack.PatchOperation {
			ops := []stack.PatchOperation{{Op: "add", Path: "/spec/runtimeClassName", Value: "crun"}, {Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}}}
			if p.Spec.Overhead != nil {
				ops = append(ops, stack.PatchOperation{Op: "remove", Path: "/spec/overhead"})
			}
			return ops
		}, `spec.runtimeClassName is "crun"`, "names crun"},
		"selector": {func(*corev1.Pod) []stack.PatchOperation {
			return []stack.PatchOperation{{Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}}}
		}, "spec.nodeSelector lacks example.com/pool=gvisor", ""},
		// At first something that ours mends, so that this one has the last word.
		"host network": {func(p *corev1.Pod) []stack.PatchOperation {
			if _, again := p.Annotations["example.com/called"]; again {
				return []stack.PatchOperation{{Op: "add", Path: "/spec/hostNetwork", Value: true}}
			}
			return []stack.PatchOperation{
				{Op: "add", Path: "/metadata/annotations/example.com~1called", Value: "once"},
				{Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}},
			}
		}, "spec.hostNetwork", "spec.hostNetwork"},
	} {
		t.Run(name, func(t *testing.T) {
			untrusted := newNamespace(t, "trust=untrusted")
			last := newMeddler(t, "zz-last", untrusted, test.patch)
			last.Forget()
			_, err := try(t, untrusted, newPod())
			if len(last.Forget()) == 0 {
				t.Fatal("the other webhook is not called")
			}
			if test.backstop == "" {
				deniedBy(t, "pods-final", err, test.want)
				return
			}
			eventually(t, func() error { // the subtest before has put it back a moment ago
				if _, err = try(t, untrusted, newPod()); err == nil || !strings.Contains(err.Error(), "-backstop") {
					return errors.Join(errors.New("not what is wanted"), err)
				}
				return nil
			})
			refusedBy(t, "backstop", err, test.backstop)
			withoutBackstop(t)
			eventually(t, func() error {
				_, err = try(t, untrusted, newPod())
				if err == nil || strings.Contains(err.Error(), "-backstop") {
					return errors.Join(errors.New("not what is wanted"), err)
				}
				return nil
			})
			deniedBy(t, "pods-final", err, test.want)
		})
	}
}

func deniedBy(t *testing.T, webhook string, err error, want string) {
	t.Helper()
	for _, text := range []string{webhook + ".runtimeclass-router.io", "denied the request: runtimeclass-router: ", want} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

// withoutBackstop takes the backstop's binding away until the test is over.
func withoutBackstop(t *testing.T) {
	t.Helper()
	bindings := clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding, err := bindings.Get(t.Context(), stack.Release+"-backstop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		if _, err := bindings.Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// newMeddler registers a webhook of somebody else, which is called anew when another one
// changes the pod. It returns when the API server calls it.
func newMeddler(t *testing.T, name, namespace string, patch func(*corev1.Pod) []stack.PatchOperation) *stack.Meddler {
	t.Helper()
	m, err := shared.NewMeddler(t.Context(), name+"-"+namespace, namespace, admissionregistrationv1.IfNeededReinvocationPolicy, patch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() error {
		_, _ = try(t, namespace, newPod()) // refused or not
		if len(m.Forget()) == 0 {
			return fmt.Errorf("the API server does not call the other webhook")
		}
		return nil
	})
	return m
}
