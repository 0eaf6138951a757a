package policies

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// module decides by a rule `hit` that reads the pod's name.
func module(rules string) Modules {
	return Modules{"p.rego": "package router\n\ndefault hit := false\n\n" + rules +
		"\n\ndecision := {\"action\": \"keep\", \"trust\": \"untrusted\", \"reasons\": [$\"hit {hit}\"], \"warnings\": []}\n"}
}

// TestRulesHaveTheSay where a plan fails: it evaluates what the rules need not.
func TestRulesHaveTheSay(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, module(`hit if input.request.name == "selftest"

hit if to_number(input.request.name) > 3`))
	if err := s.Unplanned(); err != nil {
		t.Fatal(err)
	}
	in := plainInput()
	for name, want := range map[string]string{"selftest": "hit true", "4": "hit true", "3": "hit false", "x": ""} {
		in.Request.Name = name
		got, err := s.Evaluate(t.Context(), in)
		switch {
		case want == "":
			if err == nil || !strings.Contains(err.Error(), "p.rego:7") {
				t.Errorf("%q: got %v, %v, want an error with file and line", name, got, err)
			}
		case err != nil || got.Reasons[0] != want:
			t.Errorf("%q: got %v, %v, want %s", name, got, err, want)
		}
	}
}

// TestUnplanned: a policy that OPA cannot plan is decided by its rules.
func TestUnplanned(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, module(`p[x] := 1 if x := "a"

p.b := y if y := p.a + 1

hit if p.b == 2`))
	if err := s.Unplanned(); err == nil || !strings.Contains(err.Error(), "data.router.p") {
		t.Errorf("unplanned: %v, want the rule that cannot be", err)
	}
	if got, err := s.Evaluate(t.Context(), plainInput()); err != nil || got.Reasons[0] != "hit true" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestADifferingPlanIsDropped, and the rules decide.
func TestADifferingPlanIsDropped(t *testing.T) {
	t.Parallel()
	right, wrong := snapshotOf(t, module(`hit if input.request.name == "selftest"`)), snapshotOf(t, module(`hit if input.request.name != "selftest"`))
	mixed := *right.policy
	mixed.program = wrong.policy.program
	engine := NewEngine()
	if err := engine.selfTest(t.Context(), &mixed); err != nil {
		t.Fatal(err)
	}
	if mixed.program != nil || mixed.unplanned == nil || !strings.Contains(mixed.unplanned.Error(), "hit false") {
		t.Errorf("program %v, unplanned %v", mixed.program, mixed.unplanned)
	}
}

// TestPlansAgreeWithRules over generated policies and pods.
func TestPlansAgreeWithRules(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) // any seed will do, and this one is repeatable
	for range 40 {
		source := generatedPolicy(r)
		s := snapshotOf(t, Modules{"p.rego": source})
		if err := s.Unplanned(); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			raw := generatedInput(r)
			in := Input{
				Request:   Request{Name: pick(r, "", "p-1"), Date: pick(r, "2030-01-01", "2030-01-02")},
				Namespace: catalog.Namespace{Name: pick(r, "n", "m"), Labels: map[string]string{pick(r, "a", "b"): pick(r, "x", "y")}},
				Pod:       mustRead(raw),
			}
			if err := s.Agree(t.Context(), in); err != nil {
				t.Fatal(fmt.Errorf("%w\n%s\n%s", err, source, raw))
			}
		}
	}
}

// TestObjectOf: of a name that is given twice the last one counts, however many there are.
func TestObjectOf(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 40} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `"k%d":%d,"again":%d,`, i, i, i)
		}
		term, err := newReader().term([]byte("{" + strings.TrimSuffix(text.String(), ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		object := term.Value.(ast.Object)
		if got := object.Get(ast.StringTerm("again")); object.Len() != n+1 || len(object.Keys()) != n+1 || !got.Equal(ast.IntNumberTerm(n-1)) {
			t.Errorf("%d: %d members, again is %v", n, object.Len(), got)
		}
	}
}
