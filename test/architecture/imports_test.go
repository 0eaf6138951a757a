package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/runtimeclass-router/runtimeclass-router"

// What more than one row forbids. A prefix stands for the package of that path and all
// below it.
const (
	opa               = "github.com/open-policy-agent/opa"
	clientGo          = "k8s.io/client-go"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
)

// arrows say what packages may not import, directly or by way of others. A path that
// begins with a dot is this module's.
var arrows = []struct {
	from      string
	forbidden []string
}{
	{"./catalog", []string{opa, clientGo, controllerRuntime, "./policies", "./webhook", "./certs", "./cmd", "./catalog/informers"}},
	{"./catalog/informers", []string{opa, "./policies", "./webhook", "./certs", "./cmd"}},
	{"./nodeconfig", []string{opa, clientGo, controllerRuntime, "./policies", "./catalog/informers", "./webhook", "./certs", "./cmd", "./backstop", "./registration"}},
	{"./policies", []string{clientGo, controllerRuntime, "./catalog/informers", "./webhook", "./certs", "./cmd"}},
	{"./policies/sources", []string{controllerRuntime, "./catalog/informers", "./webhook", "./certs", "./cmd", "./backstop"}},
	{"./policies/plan", []string{clientGo, controllerRuntime, "./policies", "./catalog", "./webhook", "./certs", "./cmd"}},
	{"./policies/schemas", []string{opa, clientGo, controllerRuntime, "./catalog", "./webhook", "./certs", "./cmd"}},
	{"./webhook", []string{"./certs", "./catalog/informers", "./survey", "./audit", "./cmd", "./decisionlog", "./remote"}},
	{"./decisionlog", []string{"./certs", "./catalog/informers", "./cmd", "./registration", "./backstop", "./policies/sources"}},
	{"./remote", []string{opa, clientGo, controllerRuntime, "./policies", "./catalog", "./webhook", "./certs", "./cmd"}},
	{"./certs", []string{"./policies", "./catalog", "./webhook", "./cmd"}},
	{"./survey", []string{"./audit", "./doctor", "./shadow", "./certs", "./cmd", "./backstop", "./registration"}},
	{"./doctor", []string{"./certs", "./cmd", "./catalog/informers"}},
	{"./shadow", []string{"./certs", "./cmd", "./backstop", "./registration", "./catalog/informers"}},
	{"./audit", []string{"./certs", "./cmd", "./backstop", "./registration", "./catalog/informers"}},
	{"./registration", []string{opa, controllerRuntime, "./policies", "./catalog", "./webhook", "./certs", "./cmd", "./backstop"}},
	{"./backstop", []string{"./webhook", "./certs", "./cmd", "./catalog/informers"}},
	{"./benchmark", []string{opa, controllerRuntime, "./policies", "./catalog", "./webhook", "./certs", "./registration", "./backstop", "./cmd"}},
	{"./test/node", []string{"./policies", "./catalog", "./webhook", "./certs", "./cmd", "./registration", "./backstop"}},
	{"./test/controlplane", []string{"./policies", "./catalog", "./webhook", "./certs", "./cmd"}},
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	TestImports,
	XTestImports []string
	DepOnly bool
}

// graph are packages by import path.
type graph map[string]*listed

func list(t *testing.T) graph {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Standard,Imports,TestImports,XTestImports,DepOnly", "./...")
	command.Dir = "../.."
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, stderr.Bytes())
	}
	g := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatal(err)
		}
		g[p.ImportPath] = p
	}
}

// chain is the shortest way of imports from a package to one below the prefix: empty if
// there is none.
func (g graph) chain(from, prefix string) []string {
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		p := g[way[len(way)-1]]
		if p == nil || p.Standard {
			continue
		}
		for _, next := range p.Imports {
			longer := append(slices.Clone(way), next)
			if below(next, prefix) {
				return longer
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, longer)
			}
		}
	}
	return nil
}

func below(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "./"); ok {
		return module + "/" + rest
	}
	return path
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	g := list(t)
	for _, arrow := range arrows {
		t.Run(strings.TrimPrefix(arrow.from, "./"), func(t *testing.T) {
			t.Parallel()
			from := absolute(arrow.from)
			if g[from] == nil {
				t.Fatalf("there is no package %s: mend the table", from)
			}
			for _, forbidden := range arrow.forbidden {
				if way := g.chain(from, absolute(forbidden)); way != nil {
					t.Errorf("%s may not import %s, and does:\n\t%s", arrow.from, forbidden, strings.Join(way, "\n\t-> "))
				}
			}
		})
	}
}

// TestNothingImportsCommands also looks at tests.
func TestNothingImportsCommands(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if p.DepOnly || below(p.ImportPath, module+"/cmd") {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if below(imported, module+"/cmd") {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

// TestTheTableForbidsWhatExists: a misspelt path in the table would forbid nothing.
func TestTheTableForbidsWhatExists(t *testing.T) {
	t.Parallel()
	g := list(t)
	for _, arrow := range arrows {
		for _, forbidden := range arrow.forbidden {
			prefix, found := absolute(forbidden), false
			for path := range g {
				found = found || below(path, prefix)
			}
			if !found {
				t.Errorf("%s: no package is below %s", arrow.from, prefix)
			}
		}
	}
}

func TestChainIsTheShortest(t *testing.T) {
	t.Parallel()
	g := graph{}
	for path, imports := range map[string][]string{"a": {"b", "c"}, "b": {"c", "d"}, "c": {"x/y", "fmt"}, "d": {"a"}} {
		g[path] = &listed{ImportPath: path, Imports: imports}
	}
	g["fmt"] = &listed{ImportPath: "fmt", Standard: true, Imports: []string{"unsafe"}}
	for _, test := range []struct{ from, prefix, want string }{
		{"a", "x", "[a c x/y]"}, {"d", "x/y", "[d a c x/y]"}, {"a", "x/", "[]"}, {"a", "x/y/z", "[]"}, {"c", "a", "[]"}, {"a", "unsafe", "[]"},
		{"b", "a", "[b d a]"}, {"nowhere", "a", "[]"},
	} {
		if got := fmt.Sprint(g.chain(test.from, test.prefix)); got != test.want {
			t.Errorf("from %s to %s: %s, want %s", test.from, test.prefix, got, test.want)
		}
	}
}
