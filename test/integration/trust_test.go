package integration

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

func TestUnlabelledNamespaceIsOnlyWarned(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	tests := map[string]struct {
		traits []trait
		class  string // that the pod keeps
		want   string
	}{
		"routed":   {nil, "", `in mode enforce this pod would run under runtime class "gvisor"`},
		"replaced": {[]trait{class("plain")}, "plain", "runtime class plain is replaced by gvisor"},
		"denied":   {[]trait{hostNetwork}, "", "in mode enforce this pod would be denied: no sandbox here can run this pod (spec.hostNetwork)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answer := n.in(t).create(newPod(test.traits...))
			pod := answer.mustPod(t)
			wantPlacement(t, pod, test.class)
			wantUnpatched(t, pod)
			if !mentions(answer.warnings, test.want) {
				t.Errorf("warnings %q, want one that mentions %q", answer.warnings, test.want)
			}
		})
	}
}

func TestLabelsOfANamespaceTakeEffect(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	steps := []struct {
		labels []string // as kubectl takes them
		class  string
		warned bool
	}{
		{[]string{catalog.LabelTrust + "=untrusted"}, "gvisor", false},
		{[]string{catalog.LabelMode + "=audit"}, "", false},
		{[]string{catalog.LabelMode + "=enforce"}, "gvisor", false},
		{[]string{catalog.LabelMode + "=warn"}, "", true},
		{[]string{catalog.LabelMode + "=misspelt"}, "gvisor", false},
		{[]string{catalog.LabelMode + "-", catalog.LabelTrust + "=trusted"}, "crun", false},
		{[]string{catalog.LabelProfile + "=heavy"}, "heavy", false},
		{[]string{catalog.LabelProfile + "-", catalog.LabelTrust + "-"}, "", true},
	}
	for _, step := range steps {
		n.relabel(step.labels...)
		answer := n.eventually(newPod(), step.class)
		if warned := mentions(answer.warnings, "in mode enforce this pod would run under"); warned != step.warned {
			t.Errorf("after %v: warnings %q, want any: %t", step.labels, answer.warnings, step.warned)
		}
		// A dry run tells the truth about what follows it.
		wantPlacement(t, n.admitted(newPod()), step.class)
	}
}

func TestPodLowersItselfAndNeverRaisesItself(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		namespace, pod string
		class, trust   string
		warning        string
	}{
		"lowers itself":  {"trusted", "untrusted", "gvisor", "untrusted", ""},
		"raises itself":  {"untrusted", "trusted", "gvisor", "untrusted", "label runtimeclass-router.io/trust=trusted is ignored: the pod's namespace allows untrusted at most"},
		"says nonsense":  {"trusted", "very", "gvisor", "untrusted", "label runtimeclass-router.io/trust=very of the pod is not a trust level"},
		"says the same":  {"trusted", "trusted", "crun", "trusted", ""},
		"is in nonsense": {"very", "trusted", "gvisor", "untrusted", "label runtimeclass-router.io/trust=very of the namespace is not a trust level"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := newNamespace(t, "trust="+test.namespace).create(newPod(labelled("trust=" + test.pod)))
			pod := answer.mustPod(t)
			wantPlacement(t, pod, test.class)
			wantPatched(t, pod, test.trust)
			if !mentions(answer.warnings, test.warning) || test.warning == "" && len(answer.warnings) > 0 {
				t.Errorf("warnings %q, want %q", answer.warnings, test.warning)
			}
		})
	}
}

// These are picked by the name that the API server vouches for; a label of theirs
// changes nothing.
func TestExemptNamespacesAreUntouched(t *testing.T) {
	t.Parallel()
	for _, name := range []string{metav1.NamespaceSystem, stack.Namespace} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &namespace{t: t, name: name}
			poll(t, func(ctx context.Context) (bool, error) {
				_, err := clients.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
				return err == nil, nil
			}, func() string { return "the default ServiceAccount does not appear" })
			for what, traits := range map[string][]trait{"routed": nil, "denied": {hostNetwork}} {
				answer := n.dryRun(newPod(append(traits, labelled("trust=untrusted"))...))
				pod := answer.mustPod(t)
				wantPlacement(t, pod, "")
				wantUnpatched(t, pod)
				if len(answer.warnings) > 0 {
					t.Errorf("a pod that would be %s elsewhere: warnings %q", what, answer.warnings)
				}
			}
		})
	}
}

// relabel is `kubectl label namespace`.
func (n *namespace) relabel(labels ...string) {
	n.t.Helper()
	args := append([]string{"label", "namespace", n.name, "--overwrite"}, labels...)
	if out, err := shared.Kubectl(n.t.Context(), args...); err != nil {
		n.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
