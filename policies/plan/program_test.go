package plan_test

import (
	"context"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// compiled is the program of `x = data.p.answer` over modules of package p and q.
func compiled(t *testing.T, p, q string) *plan.Program {
	t.Helper()
	compiler, err := ast.CompileModules(map[string]string{"p.rego": "package p\n\n" + p, "q.rego": "package q\n\n" + q})
	if err != nil {
		t.Fatal(err)
	}
	program, err := plan.New(t.Context(), compiler, ast.MustParseBody("x = data.p.answer"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestPathsAreNotMixedUp: a name that comes from the input is one part of a path, whatever
// is in it.
func TestPathsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	program := compiled(t, `answer := data.q[input.a][input.b]`, `inner.plain := 1

inner["with.dot"] := 2`)
	for _, test := range []struct {
		a, b string
		want int // answers
	}{
		{"inner", "plain", 1}, {"inner", "with.dot", 1}, {"inner.with", "dot", 0}, {`inner""with`, "dot", 0}, {"", "inner.plain", 0},
	} {
		got, err := program.Run(t.Context(), plan.Options{
			Data: ast.ObjectTerm(), Input: ast.ObjectTerm(ast.Item(ast.StringTerm("a"), ast.StringTerm(test.a)), ast.Item(ast.StringTerm("b"), ast.StringTerm(test.b))),
		})
		if err != nil || got.Len() != test.want {
			t.Errorf("data.q[%q][%q]: %v, %v, want %d", test.a, test.b, got, err, test.want)
		}
	}
}

// TestFacts are not worked out again, and not believed under a `with`.
func TestFacts(t *testing.T) {
	t.Parallel()
	program := compiled(t, `fact := data.n + 1

answer := [fact, replaced]

replaced := x if x := fact with data.n as 10`, "")
	facts := program.Facts()
	program.Know(facts, ast.MustParseRef("data.p.fact"), ast.IntNumberTerm(7))
	program.Know(facts, ast.MustParseRef("data.p.unheard.of"), ast.IntNumberTerm(8))
	data := ast.ObjectTerm(ast.Item(ast.StringTerm("n"), ast.IntNumberTerm(1)))
	for _, test := range []struct {
		facts plan.Facts
		want  string
	}{{nil, `{{"x": [2, 11]}}`}, {facts, `{{"x": [7, 11]}}`}} {
		got, err := program.Run(t.Context(), plan.Options{Data: data, Facts: test.facts})
		if err != nil || got.String() != test.want {
			t.Errorf("got %v, %v, want %s", got, err, test.want)
		}
	}
}

// TestRunEndsWithItsContext, in the middle of a loop.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	program := compiled(t, `answer := count([x | some x in input; some y in input; some z in input; x + y == z])`, "")
	var numbers []*ast.Term
	for i := range 3000 {
		numbers = append(numbers, ast.IntNumberTerm(i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	got, err := program.Run(ctx, plan.Options{Data: ast.ObjectTerm(), Input: ast.ArrayTerm(numbers...)})
	if err == nil {
		t.Fatalf("got %v", got)
	}
	// What it left behind is not the next one's.
	if got, err := program.Run(t.Context(), plan.Options{Data: ast.ObjectTerm(), Input: ast.ArrayTerm(numbers[0])}); err != nil || got.String() != `{{"x": 1}}` {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}
