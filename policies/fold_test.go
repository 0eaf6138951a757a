package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func sandboxes() *catalog.Catalog {
	var classes []*nodev1.RuntimeClass
	for _, handler := range []string{"crun", "runsc", "kata-fc", "kata-qemu"} {
		classes = append(classes, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "class-" + handler}, Handler: handler})
	}
	return catalog.Build(classes, nil)
}

// TestFactsChangeNothing: with and without what was worked out beforehand, the decision is
// the same.
func TestFactsChangeNothing(t *testing.T) {
	t.Parallel()
	engine := NewEngine()
	if err := engine.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), sandboxes()); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(s.policy.constant); got < 5 {
		t.Errorf("%d rules read no input: %v", got, s.policy.constant)
	}
	asked := 0
	err = RunSelfTests(&s.policy.config, func(test SelfTest) error {
		asked++
		value, err := test.Input.value(s.catalog, s.policy.reads)
		if err != nil {
			return err
		}
		var answers []any
		for _, options := range [][]rego.EvalOption{{}, {rego.EvalVirtualCache(s.facts.cache())}} {
			results, err := s.query.Eval(t.Context(), append(options, rego.EvalParsedInput(value))...)
			if err != nil {
				return err
			}
			answers = append(answers, results[0].Expressions[0].Value)
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
			t.Errorf("%s (-without +with): %s", test.Name, diff)
		}
		return nil
	})
	if err != nil || asked < 10 {
		t.Errorf("%d asked: %v", asked, err)
	}
}

// TestConstant lists what reads no input, also through other rules, and what has a value as
// a whole.
func TestConstant(t *testing.T) {
	t.Parallel()
	modules := answer(keepTrusted)
	modules["c.rego"] = `package c

alone := 1

through := alone + 1

reads := input.pod.kind

reads_through := [reads]

function(x) := x

set contains x if some x in data.config.levels

nested[x][y] := 1 if {
	some x in ["a"]
	some y in ["b"]
}

apart.a := 1

apart.b := input.pod.kind

default otherwise := 1

otherwise := 2 if input.pod.spec.hostNetwork
`
	p, err := NewEngine().newPolicy(t.Context(), modules, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, ref := range p.constant {
		if name, ok := strings.CutPrefix(ref.String(), "data.c."); ok {
			got[name] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"alone": true, "through": true, "set": true, "nested": true}, got); diff != "" {
		t.Error(diff)
	}
}

// TestFactsGiveWay: a `with` that replaces what they were made of is obeyed.
func TestFactsGiveWay(t *testing.T) {
	t.Parallel()
	f := facts{VirtualCache: topdown.NewVirtualCache()}
	ref := ast.MustParseRef("data.a.b")
	f.Put(ref, ast.IntNumberTerm(1))
	f.Put(ast.MustParseRef("data.a.c"), nil)
	layered := f.cache()
	if term, _ := layered.Get(ref); term == nil || !term.Equal(ast.IntNumberTerm(1)) {
		t.Errorf("got %v", term)
	}
	if _, undefined := layered.Get(ast.MustParseRef("data.a.c")); !undefined {
		t.Error("data.a.c is defined")
	}
	layered.Push()
	if term, undefined := layered.Get(ref); term != nil || undefined {
		t.Errorf("under with: %v", term)
	}
	layered.Pop()
	layered.Put(ref, ast.IntNumberTerm(2))
	if term, _ := layered.Get(ref); !term.Equal(ast.IntNumberTerm(2)) {
		t.Errorf("got %v", term)
	}
	if term, _ := f.cache().Get(ref); !term.Equal(ast.IntNumberTerm(1)) {
		t.Errorf("an evaluation changed the facts: %v", term)
	}
}
