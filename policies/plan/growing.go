package plan

import "github.com/open-policy-agent/opa/v1/ast"

// What grows statement by statement stands in the local that it grows in as one of the types
// below, and nowhere else but in a list: whoever reads the local gets a value of OPA's.

// grown is the value of a term that may still grow.
func grown(term *ast.Term) *ast.Term {
	switch v := term.Value.(type) {
	case *list:
		return v.term()
	case *single:
		return v.term()
	}
	return term
}

// list is an array that grows: OPA's own is copied for every element.
type list struct {
	*ast.Array // nil: to be a value at all
	terms      []*ast.Term
	read       *ast.Term
	self       ast.Term
	few        [4]*ast.Term // what terms begins in
}

func newList(capacity int) *ast.Term {
	l := &list{}
	if l.terms = l.few[:0]; capacity > len(l.few) {
		l.terms = make([]*ast.Term, 0, capacity)
	}
	l.self.Value = l
	return &l.self
}

func (l *list) append(term *ast.Term) { l.terms, l.read = append(l.terms, term), nil }

func (l *list) term() *ast.Term {
	if l.read == nil {
		terms := make([]*ast.Term, len(l.terms))
		for i, term := range l.terms {
			terms[i] = grown(term)
		}
		l.read = ast.ArrayTerm(terms...)
	}
	return l.read
}

// text is the text of a template, whose parts are text and sets of what is to be put in;
// false where only the builtin knows.
func (l *list) text(into []byte) ([]byte, bool) {
	for _, term := range l.terms {
		if s, ok := term.Value.(*single); ok {
			term = s.member
		}
		switch v := term.Value.(type) {
		case ast.String:
			into = append(into, v...)
		case ast.Number:
			into = append(into, v...)
		default:
			return nil, false
		}
	}
	return into, true
}

// emptySet is what a set is before it gets its first member. It is never changed.
var emptySet = ast.SetTerm()

// single is a set of one member, as each part of a template is, and most sets are.
type single struct {
	ast.Set // nil: to be a value at all
	member  *ast.Term
	read    *ast.Term
	self    ast.Term
}

func newSingle(member *ast.Term) *ast.Term {
	s := &single{member: member}
	s.self.Value = s
	return &s.self
}

func (s *single) term() *ast.Term {
	if s.read == nil {
		s.read = ast.SetTerm(s.member)
	}
	return s.read
}

// add adds a member to the set of a local.
func add(l []*ast.Term, local int, member *ast.Term) {
	set := l[local]
	if set == emptySet {
		l[local] = newSingle(member)
		return
	}
	if one, ok := set.Value.(*single); ok {
		set = ast.SetTerm(one.member)
		l[local] = set
	}
	set.Value.(ast.Set).Add(member)
}
