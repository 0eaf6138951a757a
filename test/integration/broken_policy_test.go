package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// brokenPolicies are those that `policy check` is tested with, a directory each.
const brokenPolicies = "../../cmd/runtimeclass-router/testdata/policy/broken"

// goodPolicies route every pod to kata-qemu, which the shipped policy would not.
var goodPolicies = map[string]string{
	"extend":  "package router.custom\n\ncandidates contains [\"kata-qemu\"]\n",
	"replace": "package router\n\ndecision := {\"action\": \"route\", \"trust\": \"untrusted\", \"runtimeClassName\": \"kata-qemu\"}\n",
}

// brokenFiles are the files of a directory of brokenPolicies.
func brokenFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(brokenPolicies, name, "*.rego"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file of %s: %v", name, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(raw)
	}
	return files
}

// A broken policy is not put in force, whatever its fault: pods are routed by the last
// good one, and /statusz and an Event on the ConfigMap say why, with the place.
func TestBrokenPolicyIsNotPutInForce(t *testing.T) {
	t.Parallel()
	half := "package router.custom\n" + strings.Repeat("# "+strings.Repeat("x", 77)+"\n", policies.MaxBytes/2/80+1)
	for mode, tests := range map[string]map[string]struct {
		files map[string]string // nil for those of the directory with the test's name
		more  map[string]string // of a second ConfigMap
		want  string
	}{
		"extend": {
			"syntax-error":      {want: "policy/custom.rego:5: rego_parse_error: unexpected eof token"},
			"unknown-pod-field": {want: "policy/custom.rego:3:26: rego_type_error: undefined ref: input.pod.spec.hostNetwrok"},
			"misspelt-rule":     {want: "policy/custom.rego:7:2: data.router.trust.levle.name is not defined"},
			"http-send":         {want: "policy/custom.rego:4:12: rego_type_error: undefined function http.send"},
			"failing-test":      {want: "policy/custom_test.rego:5:1: data.custom_test.test_debug_pods_are_let_through failed"},
			"below-the-floor":   {want: "policy/custom.rego:3:1: policy error (unsafe): action exempt would run a pod of trust \"untrusted\" under host-kernel"},
			"bad-key":           {files: map[string]string{"custom.reg": goodPolicies["extend"]}, want: `policy/custom.reg:1: key "custom.reg" of ConfigMap policy does not end in .rego`},
			"too-large":         {files: map[string]string{"a.rego": half}, more: map[string]string{"b.rego": half}, want: "and 1048576 is the most"},
		},
		"replace": {
			"undefined-decision":    {want: "policy/custom.rego:3:1: policy error (undefined): data.router.decision is undefined for this pod"},
			"conflicting-decisions": {want: "policy/custom.rego:5:1: policy error (failed)"},
			"wrong-shape":           {want: `policy/custom.rego:3:1: policy error (shape): unknown field "reason"`},
			"unknown-class":         {want: `policy/custom.rego:3:1: policy error (unsafe): runtime class "gvisro" does not exist`},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(t, mode)
			a.inForce()
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					a := a.in(t)
					if test.files == nil {
						test.files = brokenFiles(t, name)
					}
					if test.more != nil {
						a.apply("more", test.more)
					}
					broken := a.apply("policy", test.files)
					a.refused(broken, test.want)
					if test.more != nil {
						a.remove("more")
					}
					a.apply("policy", map[string]string{"custom.rego": goodPolicies[mode]})
					a.inForce()
				})
			}
		})
	}
}

// A changed policy is in force without a restart, also one in a second ConfigMap.
func TestPolicyIsWatched(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, "extend")
	a.inForce()
	started := a.status().Policy.Revision
	a.apply("more", map[string]string{"custom.rego": "package router.custom\n\ndenials contains \"closed\"\n"})
	poll(t, func(context.Context) (bool, error) { return !a.route().Allowed, nil }, a.dump)
	if s := a.status(); s.Policy.Revision == started {
		t.Errorf("the revision is still %s", started)
	}
	a.remove("more")
	a.inForce()
	if s := a.status(); s.Policy.Revision != started {
		t.Errorf("revision %s, want %s as before", s.Policy.Revision, started)
	}
}

// The chart's policy is watched in the namespace of the release.
func TestStatusOfTheChartsPolicy(t *testing.T) {
	t.Parallel()
	text, err := shared.Router.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s policyStatus
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if s.Policy.Revision == "" || s.Policy.Mode != "extend" || s.Catalog.Revision == "" || len(s.Sources) != 2 {
		t.Fatalf("status %s", text)
	}
	if source := s.Sources[1]; source.Kind != "configMaps" || source.Name != "runtimeclass-router" || source.State != "live" || source.Files != 1 || source.ReadAt == "" {
		t.Errorf("source %+v", source)
	}
}

// configMap is one that carries policy.
func policyConfigMap(namespace, name string, files map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"runtimeclass-router.io/policy": "true"}},
		Data:       files,
	}
}
