package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
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

// TestStreamIsReadManifests: taken apart document by document, a file holds what it
// holds when it is read as a whole, with the same places.
func TestStreamIsReadManifests(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	list := filepath.Join(directory, "list.json")
	writeFile(t, list, `{"items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}], "kind": "List", "apiVersion": "v1"}`)
	odd := filepath.Join(directory, "odd.yaml")
	writeFile(t, odd, "# only a comment\n---\n--- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\r\napiVersion: v1\r\nkind: Pod\n--- \nkind: [\n---\nnull")
	for _, paths := range [][]string{{diffPods}, {examples}, {"testdata/outcomes.yaml"}, {list}, {odd}} {
		whole, wantErr := catalog.ReadManifests(paths, nil)
		s, err := openStream(paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []catalog.Document
		var errs []error
		for d, err := range s.documents() {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			got = append(got, *d)
		}
		name := func(documents []catalog.Document) (names []string) {
			for _, d := range documents {
				index := d.Index
				if d.File == list {
					index = 1 // an item, of a list that is one document
				}
				names = append(names, fmt.Sprintf("%s %d %s %s", d.File, index, d.GVK, d.Raw))
			}
			return names
		}
		if diff := cmp.Diff(name(whole.Documents), name(got)); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", paths, diff)
		}
		if got := errors.Join(errs...); fmt.Sprint(got) != fmt.Sprint(wantErr) {
			t.Errorf("%v: error %v, want %v", paths, got, wantErr)
		}
	}
}

// TestStreamHoldsOneItem: an item of a JSON list is handed over before the next is read.
func TestStreamHoldsOneItem(t *testing.T) {
	t.Parallel()
	gone := errors.New("the rest is never asked for")
	item := `{"kind": "Pod", "padding": "` + strings.Repeat("x", 128<<10) + `"},`
	reader := io.MultiReader(strings.NewReader(`{"kind": "List", "items": [`+item+item), iotest.ErrReader(gone))
	items := 0
	more := readChunks(reader, func(_, _ int, chunk []byte) bool {
		items++
		return json.Valid(chunk)
	}, func(err error) bool {
		if !errors.Is(err, gone) {
			t.Error(err)
		}
		return false
	})
	if items != 2 || more {
		t.Errorf("%d items before the error, more: %t", items, more)
	}
}

// TestStreamOfABrokenList ends, and says so.
func TestStreamOfABrokenList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{`, `{"items": [`, `{"items": [{]}`, `{"items": {}}`, `{"items": [1]} x`, `{"a": }`} {
		var errs []error
		for _, err := range (&stream{files: []string{inFile(t, text)}}).documents() {
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) == 0 {
			t.Errorf("%s: no error", text)
		}
	}
}

func inFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.json")
	writeFile(t, file, text)
	return file
}
