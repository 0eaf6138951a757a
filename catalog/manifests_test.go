package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func namespaceYAML(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

func TestReadManifestsWalksDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "b.yaml", namespaceYAML("b"))
	write(t, dir, "a.yml", namespaceYAML("a"))
	write(t, dir, "sub/deep/c.json", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}}`)
	write(t, dir, "D.YAML", namespaceYAML("d"))
	write(t, dir, "readme.md", "not: [yaml")
	write(t, dir, "yaml", "not: [yaml")
	m, err := ReadManifests([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, d := range m.Documents {
		rel, err := filepath.Rel(dir, d.File)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, rel)
	}
	if diff := cmp.Diff([]string{"D.YAML", "a.yml", "b.yaml", "sub/deep/c.json"}, files); diff != "" {
		t.Error(diff)
	}
	if got := m.Namespaces(); len(got) != 4 || got["c"] == nil || got["c"].Name != "c" {
		t.Errorf("namespaces %v", got)
	}
}

// TestReadManifestsTakesANamedFileByAnyName: only a walk looks at extensions.
func TestReadManifestsTakesANamedFileByAnyName(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "manifest.txt", namespaceYAML("a"))
	if m, err := ReadManifests([]string{path}, nil); err != nil || len(m.Documents) != 1 {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestReadManifestsReadsStdinInItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, last := write(t, dir, "1.yaml", namespaceYAML("first")), write(t, dir, "2.yaml", namespaceYAML("last"))
	m, err := ReadManifests([]string{first, Stdin, last}, strings.NewReader(namespaceYAML("piped")))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, d := range m.Documents {
		files = append(files, d.File)
	}
	if diff := cmp.Diff([]string{first, "-", last}, files); diff != "" {
		t.Error(diff)
	}
	_, err = ReadManifests([]string{Stdin}, iotest.ErrReader(errors.New("torn pipe")))
	if err == nil || !strings.Contains(err.Error(), "standard input") || !strings.Contains(err.Error(), "torn pipe") {
		t.Errorf("got %v", err)
	}
}

func TestReadManifestsReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := write(t, dir, "good.yaml", namespaceYAML("good"))
	bad := write(t, dir, "bad.yaml", "a: [")
	missing, empty := filepath.Join(dir, "missing.yaml"), t.TempDir()
	m, err := ReadManifests([]string{missing, bad, empty, good}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the missing file is not told as such: %v", err)
	}
	for _, want := range []string{missing, bad + ": document 1 (line 1)", empty + " holds no .yaml, .yml or .json file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q: %v", want, err)
		}
	}
	if len(m.Documents) != 1 || m.Documents[0].File != good {
		t.Errorf("the good file is hidden: %v", m.Documents)
	}
}

func TestManifestsAreACluster(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("ns.yaml", []byte(namespaceYAML("a"))); err != nil {
		t.Fatal(err)
	}
	if m.HasRuntimeClasses() || len(m.Catalog().RuntimeClasses) != 0 {
		t.Error("a namespace is taken for a cluster")
	}
	if err := m.Add("cluster.yaml", []byte(`
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: runsc
---
apiVersion: v1
kind: Node
metadata: {name: node}
status:
  conditions: [{type: Ready, status: "True"}]
  runtimeHandlers: [{name: runsc}]
---
apiVersion: v1
kind: Namespace
metadata: {name: b, labels: {l: v}, annotations: {a: v}}
`)); err != nil {
		t.Fatal(err)
	}
	if !m.HasRuntimeClasses() {
		t.Error("no cluster in it")
	}
	if rc := m.Catalog().RuntimeClass("sandbox"); rc == nil || !rc.PoolReady {
		t.Errorf("catalog has %+v", rc)
	}
	want := map[string]*Namespace{"a": {Name: "a"}, "b": {Name: "b", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}}}
	if diff := cmp.Diff(want, m.Namespaces()); diff != "" {
		t.Error(diff)
	}
}

// TestAClassThatIsGivenTwice counts once, as it stands last: twice in the data it would make
// every decision a policy error.
func TestAClassThatIsGivenTwice(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	for _, handler := range []string{"runc", "runsc"} {
		if err := m.Add("f", []byte("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: gvisor}\nhandler: "+handler+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	if classes := m.Catalog().RuntimeClasses; len(classes) != 1 || classes[0].Handler != "runsc" {
		t.Errorf("classes %+v", classes)
	}
}
