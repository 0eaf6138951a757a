package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// textOf is the text of the pages of those paths.
func textOf(t *testing.T, paths ...string) string {
	t.Helper()
	var s strings.Builder
	for _, path := range paths {
		s.WriteString(parsePage(t, path, readFile(t, path)).text())
	}
	return s.String()
}

// counting are the packages that count.
var counting = []string{"webhook", "certs", "registration", "audit", "decisionlog", "shadow"}

// TestMetrics: what the product counts is what docs/admins.md lists.
func TestMetrics(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`runtimeclass_router_[a-z_]+`)
	var names []string
	for _, dir := range counting {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				names = append(names, name.FindAllString(readFile(t, filepath.Join(dir, filepath.Base(file))), -1)...)
			}
		}
	}
	counted := set(names)
	listed := set(name.FindAllString(textOf(t, "docs/admins.md"), -1))
	if len(counted) == 0 {
		t.Fatal("no metric found")
	}
	compareSets(t, "metric ", counted, strings.Join(counting, ", "), listed, "docs/admins.md")
}

// notOurs are keys with the prefix that are no label or annotation of the product: the
// configuration's API version, and the node label that the chart's example pools use.
var notOurs = []string{"v1alpha1", "pool"}

// TestLabels: the labels and annotations of the source are those of the guides.
func TestLabels(t *testing.T) {
	t.Parallel()
	guides := textOf(t, "docs/developers.md", "docs/admins.md")
	key := regexp.MustCompile(`(?:^|[^.a-z-])` + regexp.QuoteMeta(catalog.Prefix) + `([a-z0-9-]+)`)
	explained := map[string]bool{}
	for _, m := range key.FindAllStringSubmatch(guides, -1) {
		if !slices.Contains(notOurs, m[1]) {
			explained[m[1]] = true
		}
	}
	compareSets(t, "key "+catalog.Prefix, constants(t), "catalog/labels.go", explained, "docs/developers.md and docs/admins.md")
}

// constants are the keys of catalog/labels.go without their prefix.
func constants(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "catalog", "labels.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		sum, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		prefix, isName := sum.X.(*ast.Ident)
		suffix, isText := sum.Y.(*ast.BasicLit)
		if isName && isText && prefix.Name == "Prefix" {
			text, err := strconv.Unquote(suffix.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[text] = true
		}
		return true
	})
	if len(found) == 0 {
		t.Fatal("no key found in catalog/labels.go")
	}
	return found
}

// TestConfiguration: every key of the configuration file is explained to admins, as
// `section.key`.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	guide := textOf(t, "docs/admins.md")
	for _, file := range []struct{ path, prefix string }{
		{"cmd/runtimeclass-router/config.yaml", ""},
		{"policies/rego/config.yaml", "router."},
	} {
		var keys map[string]any
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file.path)), &keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range leaves(file.prefix, keys) {
			if key != "apiVersion" && key != "kind" && !strings.Contains(guide, "`"+key+"`") {
				t.Errorf("docs/admins.md does not explain `%s` of %s", key, file.path)
			}
		}
	}
}

func leaves(prefix string, keys map[string]any) (found []string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if below, ok := keys[key].(map[string]any); ok && len(below) > 0 {
			found = append(found, leaves(prefix+key+".", below)...)
		} else {
			found = append(found, prefix+key)
		}
	}
	return found
}

func set(names []string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

func compareSets(t *testing.T, what string, source map[string]bool, sourceName string, docs map[string]bool, docsName string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(source)) {
		if !docs[name] {
			t.Errorf("%s of %s is not in %s", what+name, sourceName, docsName)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		if !source[name] {
			t.Errorf("%s of %s is not in %s", what+name, docsName, sourceName)
		}
	}
}
