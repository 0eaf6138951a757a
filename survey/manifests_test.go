package survey

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

// TestManifestsAreReadManifests: taken apart document by document, a file holds what it
// holds when it is read as a whole, with the same places.
func TestManifestsAreReadManifests(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	list := filepath.Join(directory, "list.json")
	writeFile(t, list, `{"items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}], "kind": "List", "apiVersion": "v1"}`)
	odd := filepath.Join(directory, "odd.yaml")
	writeFile(t, odd, "# only a comment\n---\n--- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\r\napiVersion: v1\r\nkind: Pod\n--- \nkind: [\n---\nnull")
	for _, paths := range [][]string{{"../examples"}, {"../cmd/runtimeclass-router/testdata"}, {list}, {odd}} {
		whole, wantErr := catalog.ReadManifests(paths, nil)
		s, err := Open(paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []catalog.Document
		var errs []error
		for d, err := range s.Documents() {
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

// TestManifestsHoldsOneItem: an item of a JSON list is handed over before the next is read.
func TestManifestsHoldsOneItem(t *testing.T) {
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

// TestManifestsOfABrokenList ends, and says so.
func TestManifestsOfABrokenList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{`, `{"items": [`, `{"items": [{]}`, `{"items": {}}`, `{"items": [1]} x`, `{"a": }`} {
		var errs []error
		for _, err := range (&Manifests{files: []string{inFile(t, text)}}).Documents() {
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

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
