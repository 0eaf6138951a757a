package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// run is the command line, without a process of its own.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

const examples = "../../examples"

// TestRouteExamples holds `route` to what each example expects of the demo.
func TestRouteExamples(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", "route", "-f", examples, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	expected := expectations(t)
	if len(results) != len(expected) || len(expected) < 12 {
		t.Fatalf("%d results for %d examples", len(results), len(expected))
	}
	for _, r := range results {
		want, ok := expected[r.Name]
		if !ok {
			t.Errorf("%s expects nothing", r.Name)
			continue
		}
		if mentions, denied := want["expect.example.com/denied"]; denied {
			if r.Action != "deny" || !strings.Contains(strings.Join(r.Reasons, " "), mentions) {
				t.Errorf("%s: %s %v, want a denial that mentions %s", r.Name, r.Action, r.Reasons, mentions)
			}
			continue
		}
		class := r.RuntimeClassName
		if r.Mode != "enforce" {
			class = r.PreviousRuntimeClassName
		}
		if class != want["expect.example.com/class"] {
			t.Errorf("%s: class %q, want %q", r.Name, class, want["expect.example.com/class"])
		}
	}
}

// expectations are the annotations of the example pods and templates, by name.
func expectations(t *testing.T) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examples, "pods", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	for _, file := range append(files, filepath.Join(examples, "workloads.yaml")) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(raw), "\n---\n") {
			type metadata struct {
				Name        string
				Annotations map[string]string
			}
			var object struct {
				Kind     string
				Metadata metadata
				Spec     struct{ Template struct{ Metadata metadata } }
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			annotations := object.Metadata.Annotations
			if object.Kind != "Pod" {
				annotations = object.Spec.Template.Metadata.Annotations
			}
			if len(annotations) > 0 {
				found[object.Metadata.Name] = annotations
			}
		}
	}
	return found
}

// TestRouteFormats are golden: what each format prints for a pod of every outcome.
func TestRouteFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, "", "route", "-f", "testdata/outcomes.yaml", "-o", format)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "outcomes."+format+".golden")
			out = withoutRevision(out)
			if *update {
				if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out); diff != "" {
				t.Errorf("(-want +got); make golden writes it anew:\n%s", diff)
			}
		})
	}
}

// withoutRevision replaces the policy's revision, which every edit of it changes.
func withoutRevision(out string) string {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if before, _, ok := strings.Cut(line, "policy-revision"); ok {
			lines[i] = before + "policy-revision REVISION"
		} else if i > 0 && strings.Contains(lines[i-1], "~1policy-revision") {
			lines[i] = strings.Repeat(" ", 8) + `"value": "REVISION"`
		}
	}
	return strings.Join(lines, "\n")
}

func TestRouteTableFits(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", "route", "-f", examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out, "\n") {
		if width := text.StringWidthWithoutEscSequences(line); width > tableWidth {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

// TestRouteJSONKeys is the promise to those who read it with a program.
func TestRouteJSONKeys(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", "route", "-f", "testdata/outcomes.yaml", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var results []map[string]any
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"action", "isolation", "kind", "mode", "name", "namespace", "nodeSelector", "overhead", "patch",
		"previousRuntimeClassName", "reasons", "runtimeClassName", "tolerations", "trust", "warnings",
	}
	for _, r := range results {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(r))); diff != "" {
			t.Error(diff)
		}
		for key, value := range r {
			if value == nil {
				t.Errorf("%s: %s is null", r["name"], key)
			}
		}
	}
}

func TestRouteReportsWhatItCanBesideABrokenDocument(t *testing.T) {
	t.Parallel()
	var manifest strings.Builder
	for i := range 10 {
		if i == 4 {
			manifest.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: broken\n---\n")
			continue
		}
		manifest.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n---\n")
	}
	out, _, err := run(t, manifest.String(), "route", "-f", "-", "-o", "json")
	var results []result
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 9 {
		t.Errorf("%d results, want the other nine: %v", len(results), err)
	}
	if err == nil || !strings.Contains(err.Error(), "-: document 5 (line 21)") {
		t.Errorf("the error does not say which document: %v", err)
	}
}

func TestRouteNamesTheFieldOfAFaultyPod(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: empty}\nspec: {}\n", "route", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "-: document 1: Pod empty: undecodable pod: field spec.containers is missing") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out, "error") {
		t.Errorf("the table says nothing of it:\n%s", out)
	}
}

func TestRouteExitStatus(t *testing.T) {
	t.Parallel()
	const denied = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {runtimeclass-router.io/trust: untrusted}}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true, containers: [{name: c, image: i}]}\n"
	if _, _, err := run(t, denied, "route", "-f", "-"); err != nil {
		t.Errorf("a denial is an answer, not a failure: %v", err)
	}
	var exit exitError
	if _, _, err := run(t, denied, "route", "-f", "-", "--fail-on-deny"); !errors.As(err, &exit) || exit.code != 2 {
		t.Errorf("--fail-on-deny: %v", err)
	}
	for name, args := range map[string][]string{
		"no file":               {"route"},
		"a file that is absent": {"route", "-f", "testdata/absent.yaml"},
		"a format":              {"route", "-f", "-", "-o", "xml"},
		"two clusters":          {"route", "-f", "-", "--cluster", "x", "--context", "y"},
		"an argument":           {"route", "-f", "-", "surplus"},
		"a broken cluster":      {"route", "-f", "-", "--cluster", "testdata/absent.yaml"},
	} {
		if _, _, err := run(t, "", args...); err == nil || errors.As(err, &exit) {
			t.Errorf("%s: want an error, got %v", name, err)
		}
	}
}

func TestRouteKnowsExemptNamespaces(t *testing.T) {
	t.Parallel()
	pod := func(namespace string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: " + namespace + "}\nspec: {hostNetwork: true, containers: [{name: c, image: i}]}\n---\n"
	}
	out, _, err := run(t, pod("kube-system")+pod("mine")+pod("other"), "route", "-f", "-", "-o", "json", "--exempt-namespaces", "kube-system,mine")
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, string(r.Action))
	}
	if diff := cmp.Diff([]string{"exempt", "exempt", "deny"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRouteYAMLIsWhatRuns: the output of -o yaml, routed again, needs no patch.
func TestRouteYAMLIsWhatRuns(t *testing.T) {
	t.Parallel()
	namespaces, err := os.ReadFile(filepath.Join(examples, "namespaces.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mutated, _, err := run(t, "", "route", "-f", examples, "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, string(namespaces)+mutated, "route", "-f", "-", "--cluster", filepath.Join(examples, "cluster.yaml"), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) < 10 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if len(r.Patch) > 0 {
			t.Errorf("%s: a second pass patches %v", r.Name, r.Patch)
		}
	}
}

func TestEmbeddedClusterIsReady(t *testing.T) {
	t.Parallel()
	cluster, _, err := (&routeOptions{}).clusterState(t.Context(), &catalog.Manifests{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, class := range cluster.RuntimeClasses {
		names = append(names, class.Name)
		if !class.PoolReady || len(class.Notes) > 0 {
			t.Errorf("%+v", class)
		}
	}
	if diff := cmp.Diff([]string{"crun", "gvisor", "kata-clh", "kata-fc", "kata-qemu"}, names); diff != "" {
		t.Error(diff)
	}

}
