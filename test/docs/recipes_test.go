package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRecipes: each directory of recipes is on their page, with a run of its tests, which
// all pass. TestConsole runs it.
func TestRecipes(t *testing.T) {
	t.Parallel()
	const directory = "docs/examples/recipes/"
	entries, err := os.ReadDir(filepath.Join(root, directory))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 10 {
		t.Errorf("%d recipes, want ten, as the pages say", len(entries))
	}
	recipes := parsePage(t, "docs/recipes.md", readFile(t, "docs/recipes.md"))
	shown := map[string]bool{}
	for _, b := range blocksOf(t, []*page{recipes}, "console") {
		for _, c := range commands(t, &b) {
			tested := slices.Index(c.arguments, "test") + 1
			if tested == 0 || tested == len(c.arguments) {
				continue
			}
			last := c.output[len(c.output)-1]
			if !strings.HasSuffix(last, " passed, 0 failed") || strings.HasPrefix(last, "0 ") {
				t.Errorf("%s: the page does not show that its tests pass", &b)
			}
			shown[strings.TrimPrefix(c.arguments[tested], directory)] = true
		}
	}
	for _, e := range entries {
		if !shown[e.Name()] {
			t.Errorf("docs/recipes.md does not run the tests of %s%s", directory, e.Name())
		}
	}
}
