package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every relative link, to the file and to the heading in it. Other
// hosts are not asked: a test must not fail because one of them is down.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	for _, p := range pages {
		for _, l := range p.prose {
			for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(l.text, ""), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				target := p.path
				if file != "" {
					target = path.Join(path.Dir(p.path), file)
				}
				if _, err := os.Stat(filepath.Join(root, target)); err != nil {
					t.Errorf("%s:%d: link to %s: there is no %s", p.path, l.number, m[1], target)
				} else if anchor != "" && (byPath[target] == nil || !byPath[target].anchors()[anchor]) {
					t.Errorf("%s:%d: link to %s: %s has no such heading", p.path, l.number, m[1], target)
				}
			}
		}
	}
}

// sourcePath is what in a code span names a file or, by an ending slash, a folder of
// the repository. A * in it stands for any name.
var sourcePath = regexp.MustCompile("`((?:[a-z.][a-zA-Z0-9_.*-]*/)+(?:[a-zA-Z0-9_.*-]+\\.(?:go|rego|yaml|json|golden|md))?)`")

// TestPaths looks for every file and folder that a page names in a code span.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, p := range readPages(t) {
		for _, l := range p.prose {
			for _, m := range sourcePath.FindAllStringSubmatch(l.text, -1) {
				if found, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(found) == 0 {
					t.Errorf("%s:%d: there is no %s", p.path, l.number, m[1])
				}
			}
		}
	}
}
