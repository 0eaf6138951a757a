package plan

import "github.com/open-policy-agent/opa/v1/ast"

// call is what calls of functions with arguments are found by.
type call struct {
	function int
	hash     int
}

// called is one call that has been made, of those with one hash.
type called struct {
	args []*ast.Term // without input and data
	term *ast.Term   // nil for undefined
	next *called
}

// callWith calls a function with arguments of its own. That one with the same is not
// called again is no matter of speed alone: rules that call each other would otherwise
// multiply.
func (r *run) callWith(f *function, i int, args []*ast.Term) (*ast.Term, outcome) {
	key := call{function: i}
	for _, arg := range args[2:] {
		if arg != nil {
			key.hash = key.hash*31 + arg.Hash()
		}
	}
	for c := r.calls[key]; c != nil; c = c.next {
		if same(c.args, args[2:]) {
			return c.term, on
		}
	}
	own := append([]*ast.Term(nil), args[2:]...) // the callee may write to the frame they come from
	calls := r.calls
	term, o := r.evaluate(f, args)
	if o == on {
		calls[key] = &called{args: own, term: term, next: calls[key]}
	}
	return term, o
}

func same(a, b []*ast.Term) bool {
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equal(a, b *ast.Term) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && ast.ValueEqual(a.Value, b.Value)
}
