package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const brokenPolicies = "testdata/policy/broken"

// status is the exit status that an error of a command ends the process with.
func status(err error) int {
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	return 1
}

// TestPolicyCheckBroken: what each broken policy is told, and where. An entry of want is
// one problem: place, message and hint, of which the latter two need only be a part.
func TestPolicyCheckBroken(t *testing.T) {
	t.Parallel()
	type problem struct {
		file         string
		line, column int
		message      string
		hint         string
	}
	tests := map[string]struct {
		mode    string
		prepare func(t *testing.T, directory string) // for what no repository can hold
		want    []problem
	}{
		"syntax-error": {want: []problem{
			{"custom.rego", 5, 0, "rego_parse_error: unexpected eof token", ""},
		}},
		"unknown-pod-field": {want: []problem{
			{"custom.rego", 3, 26, "undefined ref: input.pod.spec.hostNetwrok", "did you mean hostNetwork?"},
			{"custom.rego", 5, 48, "undefined ref: input.pod.spec.initContainer", "did you mean initContainers?"},
		}},
		"misspelt-rule": {want: []problem{
			{"custom.rego", 7, 2, "data.router.trust.levle.name is not defined", "did you mean data.router.trust.level.name?"},
			{"custom.rego", 10, 32, "data.router.trsut.level.name is not defined", "did you mean data.router.trust.level.name?"},
		}},
		"http-send": {want: []problem{
			{"custom.rego", 4, 12, "undefined function http.send", "http.send is not allowed in policies: a decision must not depend on the network"},
		}},
		"undefined-decision": {mode: "replace", want: []problem{
			{"custom.rego", 3, 1, "policy error (undefined): data.router.decision is undefined for this pod; shown by self-test pod plain, privileged", ""},
		}},
		"conflicting-decisions": {mode: "replace", want: []problem{
			{"custom.rego", 5, 1, "data.router.decision produced conflicting values", "join them with else"},
		}},
		"wrong-shape": {mode: "replace", want: []problem{
			{"custom.rego", 3, 1, `policy error (shape): unknown field "reason"`, "did you mean reasons?"},
		}},
		// This one and the next load without a fault: the self-test over an empty catalog
		// cannot see them, routing over a cluster does.
		"unknown-class": {mode: "replace", want: []problem{
			{"custom.rego", 3, 1, `policy error (unsafe): runtime class "gvisro" does not exist`, "policy check --cluster"},
		}},
		"below-the-floor": {want: []problem{
			{"custom.rego", 3, 1, "below the floor user-space-kernel; shown by self-test pod host network, plain, privileged, volumes, with a class", "no policy goes below the floor"},
		}},
		"failing-test": {want: []problem{
			{"custom_test.rego", 5, 1, "data.custom_test.test_debug_pods_are_let_through failed", ""},
		}},
		"2-mb-file": {
			prepare: func(t *testing.T, directory string) {
				t.Helper()
				line := "# " + strings.Repeat("x", 77) + "\n"
				writeFile(t, filepath.Join(directory, "custom.rego"), "package router.custom\n"+strings.Repeat(line, 2<<20/len(line)))
			},
			want: []problem{{"custom.rego", 1, 0, "bytes, and 1048576 is the most", "split the file"}},
		},
		"half-written-directory": {
			prepare: func(t *testing.T, directory string) {
				t.Helper()
				for _, name := range []string{"a.rego", "b.rego"} {
					if err := os.Symlink("gone-"+name, filepath.Join(directory, name)); err != nil {
						t.Fatal(err)
					}
				}
				writeFile(t, filepath.Join(directory, "custom.rego"), "package router.custom\n\ndenials contains")
			},
			want: []problem{
				{"a.rego", 0, 0, "open: no such file or directory", "still being written"},
				{"b.rego", 0, 0, "open: no such file or directory", "still being written"},
			},
		},
	}
	entries, err := os.ReadDir(brokenPolicies)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if _, ok := tests[entry.Name()]; !ok {
			t.Errorf("%s/%s: no test says what it is told", brokenPolicies, entry.Name())
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := filepath.Join(brokenPolicies, name)
			if test.prepare != nil {
				directory = t.TempDir()
				test.prepare(t, directory)
			}
			arguments := []string{"policy", "check", directory}
			if test.mode != "" {
				arguments = append(arguments, "--mode", test.mode)
			}
			text, _, err := run(t, "", arguments...)
			if status(err) != 1 {
				t.Errorf("exit status %d, want 1: %v", status(err), err)
			}
			out, _, _ := run(t, "", append(arguments, "-o", "json")...)
			var got []policies.Problem
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) || strings.Count(text, "\n") != len(test.want) {
				t.Fatalf("want %d problems, one a line, got\n%s", len(test.want), text)
			}
			for i, want := range test.want {
				g := got[i]
				if g.File != filepath.Join(directory, want.file) || g.Line != want.line || g.Column != want.column {
					t.Errorf("place %s:%d:%d, want %s:%d:%d", g.File, g.Line, g.Column, want.file, want.line, want.column)
				}
				if !strings.Contains(g.Message, want.message) || !strings.Contains(g.Hint, want.hint) || (want.hint == "") != (g.Hint == "") {
					t.Errorf("got %q, hint %q\nwant %q, hint %q", g.Message, g.Hint, want.message, want.hint)
				}
				if !strings.Contains(text, g.String()+"\n") {
					t.Errorf("the text lacks %s:\n%s", g, text)
				}
			}
		})
	}
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPolicyCheckSources: one policy, fine and broken, is the same wherever it is kept.
func TestPolicyCheckSources(t *testing.T) {
	t.Parallel()
	const fine, broken = "package router.custom\n\ndenials contains \"no\" if input.pod.spec.hostNetwork\n",
		"package router.custom\n\ndenials contains \"no\" if input.pod.spec.hostNetwrok\n"
	keep := map[string]func(t *testing.T, source string) (path, file string){
		"directory": func(t *testing.T, source string) (string, string) {
			t.Helper()
			directory := t.TempDir()
			writeFile(t, filepath.Join(directory, "custom.rego"), source)
			return directory, filepath.Join(directory, "custom.rego")
		},
		"mounted ConfigMap": func(t *testing.T, source string) (string, string) {
			t.Helper()
			directory := t.TempDir()
			writeFile(t, filepath.Join(directory, "..2026", "custom.rego"), source)
			for link, target := range map[string]string{"..data": "..2026", "custom.rego": "..data/custom.rego"} {
				if err := os.Symlink(target, filepath.Join(directory, link)); err != nil {
					t.Fatal(err)
				}
			}
			return directory, filepath.Join(directory, "custom.rego")
		},
		"file": func(t *testing.T, source string) (string, string) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "custom.rego")
			writeFile(t, file, source)
			return file, file
		},
		"bundle": func(t *testing.T, source string) (string, string) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "policy.tar.gz")
			writeFile(t, file, tarball(t, "/custom.rego", source))
			return file, filepath.Join(file, "custom.rego")
		},
		"ConfigMap": func(t *testing.T, source string) (string, string) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "policy.yaml")
			raw, err := yaml.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "p"},
				"data": map[string]string{"custom.rego": source, "README": "not Rego"},
			})
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, file, string(raw))
			return file, filepath.Join(file, "custom.rego")
		},
	}
	for name, put := range keep {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := put(t, fine)
			if out, _, err := run(t, "", "policy", "check", path); err != nil || out != path+": ok\n" {
				t.Errorf("%v: %s", err, out)
			}
			path, file := put(t, broken)
			out, _, err := run(t, "", "policy", "check", path)
			want := file + ":3:26: rego_type_error: undefined ref: input.pod.spec.hostNetwrok (did you mean hostNetwork?)\n"
			if diff := cmp.Diff(want, out); diff != "" || status(err) != 1 {
				t.Errorf("%v: (-want +got)\n%s", err, diff)
			}
		})
	}
}

func tarball(t *testing.T, name, content string) string {
	t.Helper()
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// TestPolicyCheckOverACluster: a class of the author's own cluster is no fault there.
func TestPolicyCheckOverACluster(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	policy, cluster := filepath.Join(directory, "policy.rego"), filepath.Join(directory, "cluster.yaml")
	writeFile(t, policy, "package router\n\ndecision := {\"action\": \"route\", \"trust\": \"untrusted\", \"runtimeClassName\": \"ours\"}\n")
	writeFile(t, cluster, "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: ours}\nhandler: runsc\n")
	if out, _, err := run(t, "", "policy", "check", policy, "--mode", "replace"); status(err) != 1 || !strings.Contains(out, `"ours" does not exist`) {
		t.Errorf("%v: %s", err, out)
	}
	if out, _, err := run(t, "", "policy", "check", policy, "--mode", "replace", "--cluster", cluster); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPolicyCheckRefuses(t *testing.T) {
	t.Parallel()
	shipped := filepath.Join(t.TempDir(), "rego", "trust.rego")
	writeFile(t, shipped, "package router.custom\n")
	labelled := filepath.Join(t.TempDir(), "labelled.yaml")
	writeFile(t, labelled, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: team, labels: {runtimeclass-router.io/policy: 'true'}}\n"+
		"data: {custom.rego: \"package router.custom\\n\", custom.reg: \"package router.custom\\n\"}\n")
	for name, test := range map[string]struct {
		args []string
		want string // in the output or the error
	}{
		"a bad key":      {[]string{labelled}, `team/custom.reg:1: key "custom.reg" of ConfigMap team does not end in .rego (rename the key`},
		"no such path":   {[]string{"testdata/absent"}, "testdata/absent: stat: no such file or directory"},
		"no Rego in it":  {[]string{"testdata/policy/tested/fixtures"}, "no .rego file in it"},
		"another kind":   {[]string{"cluster.yaml"}, "read ConfigMap cluster.yaml: document 1 is a RuntimeClass"},
		"a format":       {[]string{"testdata", "-o", "xml"}, `--output "xml": use text or json`},
		"a mode":         {[]string{brokenPolicies + "/http-send", "--mode", "merge"}, `--mode "merge": use extend`},
		"a shipped name": {[]string{filepath.Dir(filepath.Dir(shipped))}, "rego/trust.rego has the name of a shipped one"},
		"no argument":    {nil, "accepts 1 arg"},
	} {
		out, _, err := run(t, "", append([]string{"policy", "check"}, test.args...)...)
		if err == nil || !strings.Contains(out+err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v, %s", name, test.want, err, out)
		}
	}
}

// golden compares with a file below testdata/policy, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "policy", name+".golden")
	if *update {
		writeFile(t, file, got)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got); make golden writes it anew:\n%s", diff)
	}
}

// TestPolicyCheckNotesTheSlow: a policy that cannot be planned is fine, and told of.
func TestPolicyCheckNotesTheSlow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "custom.rego")
	writeFile(t, file, `package router.custom

p[x] := 1 if x := "a"

p.b := y if y := p.a + 1

denials contains "no" if p.b == 3
`)
	stdout, stderr, err := run(t, "", "policy", "check", file)
	if err != nil || stdout != file+": ok\n" || !strings.Contains(stderr, "data.router.custom.p is not supported") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}
