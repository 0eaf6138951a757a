package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTableNamesTests: the tests that the package's documentation names are there.
func TestTableNamesTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for prefix, pattern := range map[string]string{"": "*_test.go", "cluster/": "cluster/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(raw, -1) {
				there[prefix+string(m[1])] = true
			}
		}
	}
	names := regexp.MustCompile(`(?m)(?:  |\t)((?:cluster/)?Test[A-Z]\w+)$`).FindAllSubmatch(doc, -1)
	if len(names) < 20 {
		t.Errorf("the table names %d tests: is it still one?", len(names))
	}
	for _, m := range names {
		if name := string(m[1]); !there[name] {
			t.Errorf("doc.go names %s, which is no test", name)
		}
	}
}
