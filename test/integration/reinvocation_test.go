package integration

import (
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

const (
	once     = admissionregistrationv1.NeverReinvocationPolicy
	ifNeeded = admissionregistrationv1.IfNeededReinvocationPolicy
)

func addAnnotation(p *corev1.Pod) []stack.PatchOperation {
	if p.Annotations == nil {
		return []stack.PatchOperation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{"example.com/seen": "yes"}}}
	}
	return []stack.PatchOperation{{Op: "add", Path: "/metadata/annotations/example.com~1seen", Value: "yes"}}
}

// addBlockDevice adds what gVisor cannot run.
func addBlockDevice(p *corev1.Pod) []stack.PatchOperation {
	if len(p.Spec.Containers) > 1 {
		return []stack.PatchOperation{}
	}
	other := newPod(blockDevice)
	other.Spec.Containers[0].Name = "sidecar"
	volumes := append(append([]corev1.Volume{}, p.Spec.Volumes...), other.Spec.Volumes...)
	return []stack.PatchOperation{{Op: "add", Path: "/spec/volumes", Value: volumes}, {Op: "add", Path: "/spec/containers/-", Value: other.Spec.Containers[0]}}
}

// The second call finds its own output, with another's annotation: nothing to do. A
// patch written for the pod as it first was would take out what is right by now.
func TestSecondRoundAfterAHarmlessChange(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	m := newMeddler(t, n, once, addAnnotation)
	tests := map[string]struct {
		traits []trait
		want   string
	}{
		"no class":         {nil, "gvisor"},
		"class kept":       {[]trait{class("gvisor")}, "gvisor"},
		"class replaced":   {[]trait{class("gvisor"), blockDevice}, "kata-fc"},
		"overhead by none": {[]trait{class("heavy"), labelled("workload-profile=bare")}, "kata-bare"},
		"none by overhead": {[]trait{class("plain")}, "gvisor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m.Forget()
			pod := n.in(t).admitted(newPod(test.traits...))
			wantPlacement(t, pod, test.want)
			if pod.Annotations["example.com/seen"] != "yes" {
				t.Error("the other webhook's annotation is missing")
			}
			// The other webhook came second: it saw our answer.
			seen := m.Forget()
			if len(seen) != 1 || classOf(&seen[0]) != test.want {
				t.Errorf("the other webhook saw %d pods, the first with class %q; want 1 with %q", len(seen), classOf(&seen[0]), test.want)
			}
		})
	}
}

// The plugin's one re-run is over by the time that the second round sets a class, so
// nothing is merged for it.
func TestAnswerThatChangesInTheSecondRoundIsComplete(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	newMeddler(t, n, once, addBlockDevice)
	for name, traits := range map[string][]trait{"no class": nil, "class gvisor": {class("gvisor")}, "class heavy": {class("heavy")}} {
		t.Run(name, func(t *testing.T) {
			pod := n.in(t).admitted(newPod(traits...))
			if len(pod.Spec.Containers) != 2 {
				t.Fatal("the other webhook's container is missing")
			}
			wantPlacement(t, pod, "kata-fc")
			wantPatched(t, pod, "untrusted")
			if reason := pod.Annotations[catalog.AnnotationReason]; !strings.Contains(reason, "kata-fc is the first usable") {
				t.Errorf("reason %q is of the first round", reason)
			}
		})
	}
}

func TestDenialInTheSecondRound(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	newMeddler(t, n, once, func(*corev1.Pod) []stack.PatchOperation {
		return []stack.PatchOperation{{Op: "add", Path: "/spec/hostNetwork", Value: true}}
	})
	for name, traits := range map[string][]trait{"routed in the first": nil, "kept in the first": {class("gvisor")}} {
		t.Run(name, func(t *testing.T) {
			message := wantDenied(t, n.in(t).create(newPod(traits...)), http.StatusForbidden)
			if !strings.Contains(message, "spec.hostNetwork") {
				t.Errorf("the denial does not name the field: %s", message)
			}
		})
	}
}

func TestClassThatAnotherWebhookSetsIsNotTheLastWord(t *testing.T) {
	t.Parallel()
	replace := func(name string) []stack.PatchOperation {
		return []stack.PatchOperation{{Op: "add", Path: "/spec/runtimeClassName", Value: name}}
	}
	tests := map[string]struct {
		patch func(*corev1.Pod) []stack.PatchOperation
		want  string // "" if the API server refuses: two classes select one key
	}{
		"one selector key": {func(*corev1.Pod) []stack.PatchOperation { return replace("crun") }, ""},
		"class alone":      {func(*corev1.Pod) []stack.PatchOperation { return replace("plain") }, "gvisor"},
		"class and overhead": {func(p *corev1.Pod) []stack.PatchOperation {
			if p.Spec.Overhead == nil {
				return replace("plain")
			}
			return append(replace("plain"), stack.PatchOperation{Op: "remove", Path: "/spec/overhead"})
		}, "gvisor"},
		"class taken away": {func(p *corev1.Pod) []stack.PatchOperation {
			if p.Spec.RuntimeClassName == nil {
				return []stack.PatchOperation{}
			}
			return []stack.PatchOperation{{Op: "remove", Path: "/spec/runtimeClassName"}, {Op: "remove", Path: "/spec/overhead"}}
		}, "gvisor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := untrusted(t)
			newMeddler(t, n, once, test.patch)
			answer := n.create(newPod())
			switch {
			case test.want == "" && answer.err == nil:
				t.Errorf("admitted with class %q", classOf(answer.pod))
			case test.want != "":
				wantPlacement(t, answer.mustPod(t), test.want)
			}
			wantSandboxed(t, n)
		})
	}
}

// A webhook that asks to be called again has the last word. Only one that validates
// what it leaves can refuse that.
func TestClassThatAnotherWebhookSetsLastIsRefused(t *testing.T) {
	t.Parallel()
	validating, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(validating.Items) == 0 {
		t.Fatal("the chart installs no validating webhook")
	}
	n := untrusted(t)
	newMeddler(t, n, ifNeeded, func(p *corev1.Pod) []stack.PatchOperation {
		ops := []stack.PatchOperation{}
		if classOf(p) != "plain" {
			ops = append(ops, stack.PatchOperation{Op: "add", Path: "/spec/runtimeClassName", Value: "plain"})
		}
		if p.Spec.Overhead != nil {
			ops = append(ops, stack.PatchOperation{Op: "remove", Path: "/spec/overhead"})
		}
		return ops
	})
	wantDenied(t, n.create(newPod()), http.StatusForbidden)
	wantSandboxed(t, n)
}

// wantSandboxed fails if any stored pod runs on the host's kernel.
func wantSandboxed(t *testing.T, n *namespace) {
	t.Helper()
	pods, err := clients.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		switch class := classOf(&pods.Items[i]); class {
		case "", "crun", "plain", "heavy":
			t.Errorf("pod %s is stored with class %q", pods.Items[i].Name, class)
		}
	}
}
