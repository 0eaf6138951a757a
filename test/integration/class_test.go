package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func TestPodWithoutClassGetsAllOfTheClass(t *testing.T) {
	t.Parallel()
	ownToleration := tolerating(corev1.Toleration{Key: "example.com/own", Operator: corev1.TolerationOpExists})
	gvisorsToleration := tolerating(corev1.Toleration{
		Key: "example.com/sandbox", Operator: corev1.TolerationOpEqual, Value: "gvisor", Effect: corev1.TaintEffectNoSchedule,
	})
	ownSelector := selecting("example.com/disk.type", "ssd")
	tests := map[string]struct {
		trust  string
		traits []trait
		want   string
		own    []trait // what stays beside the class's
	}{
		"untrusted":                     {trust: "untrusted", want: "gvisor"},
		"trusted":                       {trust: "trusted", want: "crun"},
		"selector of two keys":          {trust: "trusted", traits: []trait{labelled("workload-profile=heavy")}, want: "heavy"},
		"class without anything":        {trust: "untrusted", traits: []trait{labelled("workload-profile=bare")}, want: "kata-bare"},
		"profile":                       {trust: "untrusted", traits: []trait{labelled("workload-profile=syscall-heavy")}, want: "kata-fc"},
		"gvisor is ruled out":           {trust: "untrusted", traits: []trait{blockDevice}, want: "kata-fc"},
		"own toleration":                {trust: "untrusted", traits: []trait{ownToleration}, want: "gvisor", own: []trait{ownToleration}},
		"own toleration is the class's": {trust: "untrusted", traits: []trait{gvisorsToleration}, want: "gvisor"},
		"own selector":                  {trust: "untrusted", traits: []trait{ownSelector}, want: "gvisor", own: []trait{ownSelector}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newNamespace(t, "trust="+test.trust).admitted(newPod(test.traits...))
			wantPlacement(t, pod, test.want, test.own...)
			wantPatched(t, pod, test.trust)
		})
	}
}

func TestReplacedClassLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asked, profile, want string
	}{
		"overhead by another overhead":       {"heavy", "general", "gvisor"},
		"overhead by none":                   {"heavy", "bare", "kata-bare"},
		"no overhead by one":                 {"plain", "general", "gvisor"},
		"neither has any":                    {"plain", "bare", "kata-bare"},
		"one selector key, two values":       {"crun", "general", "gvisor"},
		"selector and overhead, other order": {"crun", "kernel-features", "kata-qemu"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What is the pod's own stays.
			own := []trait{selecting("example.com/disk.type", "ssd"), tolerating(corev1.Toleration{Key: "example.com/own", Operator: corev1.TolerationOpExists})}
			answer := untrusted(t).create(newPod(append(own, class(test.asked), labelled("workload-profile="+test.profile))...))
			pod := answer.mustPod(t)
			wantPlacement(t, pod, test.want, own...)
			wantPatched(t, pod, "untrusted")
			if want := "runtime class " + test.asked + " is replaced by " + test.want; !mentions(answer.warnings, want) {
				t.Errorf("warnings %q, want one that mentions %q", answer.warnings, want)
			}
		})
	}
}

// Both are sandboxes here, and what the API server has merged in by then is right
// for the one that is left.
func TestSandboxThatCannotRunThePodIsReplacedByOneThatCan(t *testing.T) {
	t.Parallel()
	pod := untrusted(t).admitted(newPod(class("gvisor"), blockDevice))
	wantPlacement(t, pod, "kata-fc")
	wantPatched(t, pod, "untrusted")
}

func TestAskedClassIsKeptWithoutAPatch(t *testing.T) {
	t.Parallel()
	for trust, asked := range map[string]string{"untrusted": "kata-qemu", "trusted": "heavy"} {
		t.Run(trust, func(t *testing.T) {
			t.Parallel()
			pod := newNamespace(t, "trust="+trust).admitted(newPod(class(asked)))
			wantPlacement(t, pod, asked)
			wantUnpatched(t, pod)
		})
	}
}

func TestKeysWithSlashes(t *testing.T) {
	t.Parallel()
	pod := untrusted(t).admitted(newPod(
		class("heavy"), // its selector's keys are removed by name
		labelled("example.com/app.kind=x"),
		annotated("example.com/note", "a/b~c"),
		annotated(catalog.AnnotationTrust, "trusted"),
		selecting("example.com/disk.type", "ssd"),
	))
	wantPlacement(t, pod, "gvisor", selecting("example.com/disk.type", "ssd"))
	wantPatched(t, pod, "untrusted") // in place of what the pod claims
	if pod.Labels["example.com/app.kind"] != "x" || pod.Annotations["example.com/note"] != "a/b~c" {
		t.Errorf("labels %v, annotations %v: what is not ours has changed", pod.Labels, pod.Annotations)
	}
}

// A key with a tilde would need the other escape of a JSON pointer. No map that is
// patched can hold one.
func TestKeyWithATildeIsRefusedByTheAPIServer(t *testing.T) {
	t.Parallel()
	const key = "example.com/a~b"
	_, err := clients.NodeV1().RuntimeClasses().Create(t.Context(), &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tilde"}, Handler: "tilde",
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{key: "x"}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a RuntimeClass that selects by %s: %v, want it invalid", key, err)
	}
	for name, own := range map[string]trait{"node selector": selecting(key, "x"), "annotation": annotated(key, "x")} {
		if err := untrusted(t).dryRun(newPod(own)).err; !apierrors.IsInvalid(err) {
			t.Errorf("a pod with it in its %s: %v, want it invalid", name, err)
		}
	}
}

func mentions(lines []string, part string) bool {
	return strings.Contains(strings.Join(lines, "\n"), part)
}
