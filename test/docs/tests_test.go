package docs

import (
	"path/filepath"
	"regexp"
	"testing"
)

// namedTest is a test that a page cites, fuzzing included.
var namedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)

// TestCitedTests: a test that a page cites as evidence is there, in the file that is named
// before it on the line, if one is.
func TestCitedTests(t *testing.T) {
	t.Parallel()
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	files := map[string][]string{}
	all := map[string]bool{}
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range defined.FindAllStringSubmatch(readFile(t, name), -1) {
				files[name] = append(files[name], m[1])
				all[m[1]] = true
			}
		}
	}
	cited := 0
	// In a row of a table the file comes first, and then its tests.
	citation := regexp.MustCompile("`([^`]+_test\\.go)`|" + namedTest.String())
	for _, p := range readPages(t) {
		for _, l := range p.prose {
			within := all
			for _, m := range citation.FindAllStringSubmatch(l.text, -1) {
				if m[1] != "" {
					within = map[string]bool{}
					for name, tests := range files {
						if ok, err := filepath.Match(m[1], name); err == nil && ok {
							for _, test := range tests {
								within[test] = true
							}
						}
					}
					continue
				}
				if cited++; !within[m[0]] {
					t.Errorf("%s:%d: there is no %s where it is said to be", p.path, l.number, m[0])
				}
			}
		}
	}
	if cited == 0 {
		t.Fatal("no page cites a test")
	}
}
