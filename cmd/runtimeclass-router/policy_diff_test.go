package main

import (
	"os"
	"strings"
	"testing"
)

const (
	diffPods   = "testdata/policy/diff/pods.yaml"
	diffPolicy = "testdata/policy/diff"
)

// TestPolicyDiffFormats are golden, and exit with 3 for the pod that is newly denied.
func TestPolicyDiffFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json"} {
		out, errOut, err := run(t, "", "policy", "diff", "--new", diffPolicy, "-f", diffPods, "-o", format)
		if status(err) != exitNewlyDenied || errOut != "" {
			t.Errorf("status %d: %v\n%s", status(err), err, errOut)
		}
		golden(t, "diff."+format, out)
	}
}

func TestPolicyDiffExitStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want int
		says string
	}{
		"the same":         {nil, 0, "0 of 5 change their route, 0 newly denied\n"},
		"no longer denied": {[]string{"--old", diffPolicy}, 0, "3 of 5 change their route, 0 newly denied\n"},
		"a policy error":   {[]string{"--new", brokenPolicies + "/below-the-floor"}, 3, "(unsafe)"},
		"a label":          {[]string{"--set-label", "platform:runtimeclass-router.io/trust=untrusted"}, 3, "spec.hostNetwork"},
		"a milder label":   {[]string{"--set-label", "shop:runtimeclass-router.io/trust=trusted"}, 0, "4 of 5 change their route"},
		"no label":         {[]string{"--set-label", "shop:runtimeclass-router.io/trust-"}, 0, "unchanged (warn)"},
		"a typing mistake": {[]string{"--set-label", "shpo:a=b"}, 0, "note: --set-label: no pod or workload that was compared is in namespace shpo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := run(t, "", append([]string{"policy", "diff", "-f", diffPods}, test.args...)...)
			// A cell may be wrapped.
			if said := strings.Join(strings.Fields(out+errOut), " "); status(err) != test.want || !strings.Contains(said, strings.TrimSpace(test.says)) {
				t.Errorf("status %d, want %d and %q: %v\n%s%s", status(err), test.want, test.says, err, out, errOut)
			}
		})
	}
}

func TestPolicyDiffRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":         {nil, "nothing to compare"},
		"an absent file":  {[]string{"-f", "testdata/absent.yaml"}, "no such file"},
		"stdin twice":     {[]string{"-f", "-", "-f", "-"}, "given twice"},
		"a format":        {[]string{"-f", diffPods, "-o", "yaml"}, "use table or json"},
		"a broken policy": {[]string{"-f", diffPods, "--new", brokenPolicies + "/unknown-pod-field"}, "--new: " + brokenPolicies + "/unknown-pod-field/custom.rego:3:26: "},
		"a label":         {[]string{"-f", diffPods, "--set-label", "shop=x"}, "write NAMESPACE:KEY=VALUE"},
		"a label's key":   {[]string{"-f", diffPods, "--set-label", "shop:a b=x"}, "write NAMESPACE:KEY=VALUE"},
	} {
		if _, _, err := run(t, "", append([]string{"policy", "diff"}, test.args...)...); status(err) != 1 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
}

// TestPolicyDiffComparesTheRest beside a broken document, and says where that one is.
func TestPolicyDiffComparesTheRest(t *testing.T) {
	t.Parallel()
	pods, err := os.ReadFile(diffPods)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "kind: Pod\nmetadata: {name: broken\n---\n"+string(pods), "policy", "diff", "-f", "-", "--new", diffPolicy)
	if status(err) != 1 || !strings.Contains(err.Error(), "-: document 1 (line 1)") || strings.Count(err.Error(), "document 1") != 1 {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out, "3 of 5 change") {
		t.Error(out)
	}
}

// TestPolicyDiffOfARunningPod: that the scheduler has bound it does not count against it,
// and a node that a manifest names does.
func TestPolicyDiffOfARunningPod(t *testing.T) {
	t.Parallel()
	const manifest = `{"items": [
		{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"runtimeclass-router.io/trust": "trusted"}}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": {"nodeName": "crun-1", "containers": [{"name": "c", "image": "i"}]}, "status": {}}]}`
	for phase, want := range map[string]int{`{}`: exitNewlyDenied, `{"phase": "Running"}`: 0} {
		out, _, err := run(t, strings.Replace(manifest, `"status": {}`, `"status": `+phase, 1), "policy", "diff", "-f", "-", "--set-label", "shop:runtimeclass-router.io/trust=untrusted")
		if status(err) != want || !strings.Contains(out, "1 of 1 change") {
			t.Errorf("status %s: %v\n%s", phase, err, out)
		}
	}
}

// TestPolicyDiffSaysWhatItCannotKnow: a class that was replaced, and the label that is
// tried out, both in words.
func TestPolicyDiffSaysWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	list := `{"items": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"runtimeclass-router.io/trust": "untrusted"}}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop",
		"annotations": {"runtimeclass-router.io/trust": "untrusted", "runtimeclass-router.io/reason": "so", "runtimeclass-router.io/policy-revision": "1"},
		"managedFields": [{"manager": "c", "fieldsV1": {"f:spec": {"f:containers": {}, "f:runtimeClassName": {}}}}]},
		"spec": {"containers": [{"name": "c", "image": "i"}], "runtimeClassName": "gvisor", "overhead": {"cpu": "50m"}}, "status": {"phase": "Running"}}]}`
	out, errOut, err := run(t, list, "policy", "diff", "-f", "-", "--set-label", "shop:runtimeclass-router.io/trust=trusted")
	if err != nil || !strings.Contains(out, "gvisor") || !strings.Contains(out, "crun") || !strings.Contains(out, "1 of 1 change") {
		t.Errorf("%v\n%s", err, out)
	}
	if want := "note: pods whose class the webhook replaced count as asking for none, since what they asked for is not recorded: 1\n"; errOut != want {
		t.Errorf("got %q, want %q", errOut, want)
	}
}
