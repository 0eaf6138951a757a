package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// sandboxPod uses what gVisor cannot do and Kata can, and runs elsewhere better than on
// Firecracker.
const sandboxPod = `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {runtimeclass-router.io/trust: untrusted, runtimeclass-router.io/workload-profile: syscall-heavy}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec:
  nodeSelector: {example.com/runtime: kata-clh}
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v, mountPropagation: HostToContainer}]}]
`

func TestPolicyEval(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, sandboxPod, "policy", "eval", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "eval", out)
	var keys map[string]any
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) != 7 {
		t.Errorf("%v: %v", err, keys)
	}
}

// TestPolicyEvalExplain is golden for a sandboxed pod, a trusted one, a denied one and
// one that a hook decides.
func TestPolicyEvalExplain(t *testing.T) {
	t.Parallel()
	trusted := strings.Replace(sandboxPod, "trust: untrusted", "trust: trusted", 1)
	for name, test := range map[string]struct {
		pod  string
		args []string
	}{
		"sandboxed": {pod: sandboxPod},
		"prefer":    {pod: strings.Replace(sandboxPod, "  nodeSelector: {example.com/runtime: kata-clh}\n", "  runtimeClassName: crun\n", 1)},
		"trusted":   {pod: trusted},
		"denied":    {pod: strings.Replace(sandboxPod, "spec:", "spec:\n  hostNetwork: true", 1)},
		"hook":      {pod: strings.Replace(sandboxPod, "name: p,", "name: p, labels: {app: web},", 1), args: []string{"--policy", diffPolicy}},
		"replaced":  {pod: sandboxPod, args: []string{"--policy", brokenPolicies + "/unknown-class/custom.rego", "--mode", "replace", "--cluster", "testdata/policy/gvisro.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, test.pod, append([]string{"policy", "eval", "-f", "-", "--explain"}, test.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "explain."+name, out)
		})
	}
}

// TestPolicyEvalUnsafe: what Go refuses is an error with the rule's place, below the
// answer or the explanation.
func TestPolicyEvalUnsafe(t *testing.T) {
	t.Parallel()
	const want = "/below-the-floor/custom.rego:3:1: policy error (unsafe): action exempt"
	for _, arguments := range [][]string{nil, {"--explain"}} {
		out, _, err := run(t, sandboxPod, append([]string{"policy", "eval", "-f", "-", "--policy", brokenPolicies + "/below-the-floor"}, arguments...)...)
		if status(err) != 1 || !strings.Contains(err.Error(), want) || out == "" {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestPolicyEvalConflict: two hooks of the author's differ, which OPA sees in the shipped
// rule that reads them. The error is placed at the first, and both are named.
func TestPolicyEvalConflict(t *testing.T) {
	t.Parallel()
	const conflict = "../../docs/examples/conflict"
	out, _, err := run(t, "", "policy", "eval", "-f", conflict+"/pod.yaml", "--policy", conflict, "--explain")
	if status(err) != 1 || !strings.Contains(err.Error(), conflict+"/custom.rego:4:1: policy error (failed): ") || !strings.Contains(err.Error(), "conflicting values") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"trust   untrusted\n", "fired   data.router.custom.candidates at " + conflict + "/custom.rego:4\n", "/custom.rego:6\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

func TestPolicyEvalProfile(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, sandboxPod, "policy", "eval", "-f", "-", "--profile")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 11 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range lines[1:] {
		if !regexp.MustCompile(`^ *[0-9.]+ +[0-9.]+  rego/[a-z]+\.rego:[0-9]+  .`).MatchString(line) {
			t.Errorf("no figures and place: %q", line)
		}
	}
}

func TestPolicyEvalRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no pod":          {"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", nil, "0 pods and workloads"},
		"two pods":        {sandboxPod + "---\n" + sandboxPod, nil, "2 pods and workloads"},
		"both":            {sandboxPod, []string{"--explain", "--profile"}, "[explain profile]"},
		"a broken pod":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\n", nil, "containers"},
		"a broken policy": {sandboxPod, []string{"--policy", brokenPolicies + "/http-send"}, "custom.rego:4:12"},
		"no file":         {"", nil, "0 pods"},
	} {
		out, _, err := run(t, test.stdin, append([]string{"policy", "eval", "-f", "-"}, test.args...)...)
		if status(err) != 1 || !strings.Contains(out+err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v\n%s", name, test.want, err, out)
		}
	}
}
