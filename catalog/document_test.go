package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// faults are the document errors that err joins.
func faults(err error) []*DocumentError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*DocumentError
		for _, err := range joined.Unwrap() {
			all = append(all, faults(err)...)
		}
		return all
	}
	var e *DocumentError
	if errors.As(err, &e) {
		return []*DocumentError{e}
	}
	return nil
}

func TestABrokenDocumentDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	breaks := map[string]struct{ document, want string }{
		"syntax":          {"a: [\n", "yaml"},
		"duplicate key":   {"apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\nkind: Pod\n", `key "kind" already set in map`},
		"twice in JSON":   {`{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b", "a": "c"}}}` + "\n", `key "a" already set in map`},
		"no kind":         {"apiVersion: v1\nmetadata: {name: x}\n", "field kind is missing"},
		"no apiVersion":   {"kind: Namespace\nmetadata: {name: x}\n", "field apiVersion is missing"},
		"bad apiVersion":  {"apiVersion: a/b/c\nkind: Namespace\n", "field apiVersion"},
		"a scalar":        {"hello\n", "not a Kubernetes object"},
		"a sequence":      {"- a\n- b\n", "not a Kubernetes object"},
		"kind is a map":   {"apiVersion: v1\nkind: {}\n", "not a Kubernetes object"},
		"a field's type":  {"apiVersion: v1\nkind: Namespace\nmetadata: {labels: [a]}\n", "Namespace: "},
		"two broken ones": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: 7}\n- {kind: Namespace}\n", "items[1]: field apiVersion is missing"},
	}
	for name, broken := range breaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var file strings.Builder
			line := 0
			for i := range 10 {
				if i > 0 {
					file.WriteString("---\n")
				}
				if i == 6 {
					line = 1 + strings.Count(file.String(), "\n")
					file.WriteString(broken.document)
					continue
				}
				file.WriteString(namespaceYAML(fmt.Sprintf("ns%d", i)))
			}
			m := &Manifests{}
			err := m.Add("ten.yaml", []byte(file.String()))
			var got, want []string
			for _, d := range m.Documents {
				got = append(got, fmt.Sprintf("%s %d %s", d.File, d.Index, d.Object.(*corev1.Namespace).Name))
			}
			for i := range 10 {
				if i != 6 {
					want = append(want, fmt.Sprintf("ten.yaml %d ns%d", i+1, i))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			found := faults(err)
			if len(found) != 1 || found[0].File != "ten.yaml" || found[0].Index != 7 || found[0].Line != line {
				t.Fatalf("got %v, want one fault in document 7 at line %d", err, line)
			}
			for _, part := range []string{fmt.Sprintf("ten.yaml: document 7 (line %d): ", line), broken.want} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("lacks %q: %v", part, err)
				}
			}
		})
	}
}

// TestLineIsWhereTheDocumentStarts: a document starts after its separator, or at the
// top of the file. BROKEN marks the line in the files below.
func TestLineIsWhereTheDocumentStarts(t *testing.T) {
	t.Parallel()
	const good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
	tests := map[string]struct {
		file  string
		index int
	}{
		"the only one":                 {"BROKEN: [\n", 1},
		"no newline at the end":        {good + "---\nBROKEN: [", 2},
		"after a document":             {good + "---\nBROKEN: [\n", 2},
		"after a comment of the file":  {"# a file\n# of mine\n---\nBROKEN: [\n", 1},
		"separator at the top":         {"---\nBROKEN: [\n", 1},
		"separator at top, second":     {"---\n" + good + "---\nBROKEN: [\n", 2},
		"two separators at the top":    {"---\n---\nBROKEN: [\n", 1},
		"two separators in the middle": {good + "---\n---\nBROKEN: [\n", 2},
		"comment on the separator":     {good + "--- # second\nBROKEN: [\n", 2},
		"blank lines in a document":    {"\n\n" + good + "\n\n---\nBROKEN: [\n", 2},
		"carriage returns":             {strings.ReplaceAll(good+"---\nBROKEN: [\n", "\n", "\r\n"), 2},
		"helm's source comment":        {"---\n# Source: chart/a.yaml\n" + good + "---\n# Source: chart/b.yaml\n" + good + "---\nBROKEN: [\n", 3},
		"dashes in a block scalar":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: |\n    ---\n    b\n---\nBROKEN: [\n", 2},
		"a longer document":            {strings.Repeat("# filler\n", 300) + good + "---\nBROKEN: [\n", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, _, ok := strings.Cut(test.file, "BROKEN")
			if !ok {
				t.Fatal("the file marks no line")
			}
			want := 1 + strings.Count(before, "\n")
			found := faults((&Manifests{}).Add("f.yaml", []byte(test.file)))
			if len(found) != 1 || found[0].Line != want || found[0].Index != test.index {
				t.Errorf("got %v, want document %d at line %d", found, test.index, want)
			}
		})
	}
}

// TestATextBehindASeparatorHidesNoDocument: YAML allows content on the separator's
// line.
func TestATextBehindASeparatorHidesNoDocument(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	err := m.Add("f.yaml", []byte(namespaceYAML("before")+"--- {a: b}\n"+namespaceYAML("inside")+"---\n"+namespaceYAML("after")))
	found := faults(err)
	if len(found) != 1 || found[0].Line != 4 {
		t.Errorf("got %v, want one fault, at line 4", err)
	}
	got := m.Namespaces()
	if got["before"] == nil || got["after"] == nil {
		t.Errorf("good documents are lost: %v", got)
	}
}

func TestADocumentMayBeginBehindItsSeparator(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"--- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n",
		"# c\n--- # c\n" + namespaceYAML("a"), "---\r\n" + namespaceYAML("a"), namespaceYAML("a") + "...\n---\n",
	} {
		m := &Manifests{}
		if err := m.Add("f.yaml", []byte(file)); err != nil || len(m.Documents) != 1 || m.Namespaces()["a"] == nil {
			t.Errorf("%q became %+v, %v", file, m.Documents, err)
		}
	}
}

// TestDashesThatAreNoSeparator: the three dashes must stand alone.
func TestDashesThatAreNoSeparator(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("f.yaml", []byte("---x: y\napiVersion: example.com/v1\nkind: Widget\n")); err != nil || len(m.Documents) != 1 {
		t.Errorf("got %+v, %v", m.Documents, err)
	}
}

func TestListsAreTakenApart(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	err := m.Add("list.yaml", []byte(`# first
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
- {apiVersion: v1, kind: Namespace, metadata: {labels: 7}}
- apiVersion: v1
  kind: List
  items: [{apiVersion: v1, kind: Namespace, metadata: {name: b}}, {kind: Pod}]
- plain
- {apiVersion: v1, kind: Namespace, metadata: {name: c}}
`))
	var names []string
	for _, d := range m.Documents {
		if d.Index != 1 || d.File != "list.yaml" {
			t.Errorf("document %+v is elsewhere", d)
		}
		names = append(names, d.Object.(*corev1.Namespace).Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"list.yaml: document 1 (line 3)", "items[1]: Namespace", "items[2]: items[1]: field apiVersion", "items[3]: not a Kubernetes object"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q: %v", want, err)
		}
	}
}

func TestUnknownKindsAreKeptUntyped(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"apiVersion: example.com/v1\nkind: Widget\n", "apiVersion: v1\nkind: Widget\n", "apiVersion: apps/v9\nkind: Deployment\n"} {
		m := &Manifests{}
		if err := m.Add("f.yaml", []byte(head+"spec: {size: 7}\n")); err != nil {
			t.Fatal(err)
		}
		d := m.Documents[0]
		if d.Object != nil || len(d.Warnings) != 0 || d.GVK.Kind == "" || !strings.Contains(string(d.Raw), `"spec":{"size":7}`) {
			t.Errorf("%q became %+v", head, d)
		}
	}
}

func TestUnknownFieldsAreWarningsAndStayInRaw(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("f.yaml", []byte(`
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostNetwrok: true
  containers: [{name: c, image: i, imagePullpolicy: Always}]
`)); err != nil {
		t.Fatal(err)
	}
	d := m.Documents[0]
	want := []string{`unknown field "spec.containers[0].imagePullpolicy"`, `unknown field "spec.hostNetwrok"`}
	if diff := cmp.Diff(want, d.Warnings); diff != "" {
		t.Error(diff)
	}
	if pod, ok := d.Object.(*corev1.Pod); !ok || pod.Name != "p" || pod.Spec.Containers[0].Name != "c" {
		t.Errorf("what is known was not decoded: %+v", d.Object)
	}
	var raw any
	if err := json.Unmarshal(d.Raw, &raw); err != nil {
		t.Fatal(err)
	}
	spec := raw.(map[string]any)["spec"].(map[string]any)
	if spec["hostNetwrok"] != true || spec["containers"].([]any)[0].(map[string]any)["imagePullpolicy"] != "Always" {
		t.Errorf("Raw lost fields: %s", d.Raw)
	}
}

func TestDocumentsOfCommentsAreNoObjects(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "\n", "# nothing\n", "---\n", "---\n# a\n---\n# b\n---\n", "null\n"} {
		m := &Manifests{}
		if err := m.Add("f.yaml", []byte(file)); err != nil || len(m.Documents) != 0 {
			t.Errorf("%q became %v, %v", file, m.Documents, err)
		}
	}
}

func TestCommentsAreNotCounted(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("f.yaml", []byte("# head\n---\n"+namespaceYAML("a")+"---\n# nothing\n---\n"+namespaceYAML("b"))); err != nil {
		t.Fatal(err)
	}
	if len(m.Documents) != 2 || m.Documents[0].Index != 1 || m.Documents[1].Index != 2 {
		t.Errorf("got %+v", m.Documents)
	}
}

func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("f.json", []byte("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"a\", \"labels\": {\"n\": \"1\"}}\n}\n")); err != nil {
		t.Fatal(err)
	}
	if ns := m.Namespaces()["a"]; ns == nil || ns.Labels["n"] != "1" {
		t.Errorf("got %+v", m.Documents)
	}
	err := m.Add("f.json", []byte(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "name": "b"}}`))
	if err == nil || !strings.Contains(err.Error(), `key "name" already set`) {
		t.Errorf("a duplicate key passes: %v", err)
	}
}

// TestLargeNumbersAreKept: an identifier above 2^53 must not be rounded on its way
// through YAML.
func TestLargeNumbersAreKept(t *testing.T) {
	t.Parallel()
	m := &Manifests{}
	if err := m.Add("f.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {securityContext: {runAsUser: 9007199254740993}}\n")); err != nil {
		t.Fatal(err)
	}
	if raw := string(m.Documents[0].Raw); !strings.Contains(raw, "9007199254740993") {
		t.Error(raw)
	}
}
