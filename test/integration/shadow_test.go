package integration

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestSecondPolicyIsCountedAndNotEnforced: a ConfigMap of the second policy denies a pod; the
// pod is created all the same, and /statusz says what would have become of it.
func TestSecondPolicyIsCountedAndNotEnforced(t *testing.T) {
	t.Parallel()
	const denial = "package router.custom\n\ndenials contains \"not with that label\" if input.pod.metadata.labels[\"example.com/second-policy\"]\n"
	manifest := policyManifest(stack.Namespace, "second", `runtimeclass-router.io/policy: shadow`, "next.rego", denial)
	if _, err := shared.KubectlInput(t.Context(), strings.NewReader(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	type report struct {
		Shadow struct {
			Revision string
			Errors   []string
			Changes  []survey.Counted
		}
	}
	status := func() report {
		t.Helper()
		text, err := shared.Router.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var r report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return r
	}
	until := time.Now().Add(time.Minute)
	wait := func(what string) {
		t.Helper()
		if time.Now().After(until) {
			t.Fatalf("waited a minute for %s: %+v", what, status().Shadow)
		}
		time.Sleep(200 * time.Millisecond)
	}
	for status().Shadow.Revision == "" {
		wait("the second policy")
	}
	n := newNamespace(t, "trust=untrusted")
	n.admitted(newPod())
	for {
		// What other tests do to the cluster meanwhile leaves a decision out.
		n.admitted(newPod(labelled("example.com/second-policy=x")))
		for _, change := range status().Shadow.Changes {
			if change.Namespace != n.name {
				continue
			}
			if !change.NewlyDenied || change.From != "gvisor" || change.To != "DENIED" || !strings.Contains(change.Reason, "not with that label") {
				t.Errorf("change %+v", change)
			}
			return
		}
		wait("the difference")
	}
}
