package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// harmless is a policy that no pod of these tests meets, and misspelt one with a fault.
const (
	harmless = "package router.custom\n\ndenials contains \"never\" if input.pod.metadata.labels[\"example.com/policy-configmap\"]\n"
	misspelt = "package router.custom\n\ndenials contains \"never\" if input.pod.spec.hostNetwrok\n"
)

// policyManifest is a ConfigMap with one file.
func policyManifest(namespace, name, label, key, source string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {%s}}
data: {%s: %q}
`, name, namespace, label, key, source)
}

// A policy that would not be put in force is refused when it is applied, with the place;
// one that is no policy of the release's is nobody's business. All are dry runs, which
// the API server sends like any other request: nothing is put in force.
func TestPolicyConfigMapIsCheckedWhenItIsApplied(t *testing.T) {
	t.Parallel()
	const labelled = `runtimeclass-router.io/policy: "true"`
	elsewhere := newNamespace(t).name
	tests := map[string]struct {
		namespace, label, key, source string
		refused                       []string
	}{
		"good":                   {stack.Namespace, labelled, "a.rego", harmless, nil},
		"misspelt field":         {stack.Namespace, labelled, "a.rego", misspelt, []string{"policies.runtimeclass-router.io", "runtimeclass-router: misspelt-field/a.rego:3:", "undefined ref: input.pod.spec.hostNetwrok (did you mean hostNetwork?)"}},
		"syntax":                 {stack.Namespace, labelled, "a.rego", "package router.custom\n\ndenials contains", []string{"runtimeclass-router: syntax/a.rego:3:", "rego_parse_error"}},
		"below the floor":        {stack.Namespace, labelled, "a.rego", "package router.custom\n\nexemptions contains \"all\"\n", []string{"runtimeclass-router: below-the-floor/a.rego:3:1: policy error (unsafe)", "below the floor user-space-kernel"}},
		"never ends":             {stack.Namespace, labelled, "a.rego", endless, []string{"runtimeclass-router: never-ends/a.rego:", "an answer takes more than ", ", and 250ms is the most", "shown by self-test pod"}},
		"bad key":                {stack.Namespace, labelled, "a.reg", harmless, []string{`runtimeclass-router: bad-key/a.reg:1: key "a.reg" of ConfigMap bad-key does not end in .rego`}},
		"without the label":      {stack.Namespace, "team: a", "a.rego", misspelt, nil},
		"labelled false":         {stack.Namespace, `runtimeclass-router.io/policy: "false"`, "a.rego", misspelt, nil},
		"in another's namespace": {elsewhere, labelled, "a.rego", misspelt, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := strings.NewReplacer(" ", "-", "'", "").Replace(name)
			manifest := policyManifest(test.namespace, object, test.label, test.key, test.source)
			_, err := shared.KubectlInput(t.Context(), strings.NewReader(manifest), "apply", "--dry-run=server", "-f", "-")
			if (err == nil) != (test.refused == nil) {
				t.Fatalf("refused: %v", err)
			}
			for _, want := range test.refused {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q: %v", want, err)
				}
			}
		})
	}
}

// endless is a rule that would hold up every pod for hours.
const endless = `package router.custom

denials contains "never" if {
	some a in numbers.range(1, 10000)
	some b in numbers.range(1, 10000)
	a * b == -1
}
`

// Policies are checked one at a time; kubectl waits for its turn.
func TestPolicyConfigMapsAppliedAtOnce(t *testing.T) {
	t.Parallel()
	ended := make(chan error)
	names := []string{"at-once-a", "at-once-b", "at-once-c", "at-once-d"}
	for _, name := range names {
		manifest := policyManifest(stack.Namespace, name, `runtimeclass-router.io/policy: "true"`, "a.rego", harmless)
		go func() {
			_, err := shared.KubectlInput(t.Context(), strings.NewReader(manifest), "apply", "--dry-run=server", "-f", "-")
			ended <- err
		}()
	}
	for range names {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
