package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

var (
	errCancelled = fmt.Errorf("evaluation: %w", context.Canceled)
	errConflict  = errors.New("a rule has two values")
)

// emptyObject is what an object is before it gets its first member: most never do. It is
// never changed.
var emptyObject = ast.ObjectTerm()

// put puts a member into the object of a local.
func put(l []*ast.Term, local int, key, value *ast.Term) {
	if l[local] == emptyObject {
		l[local] = ast.ObjectTerm(ast.Item(key, value))
	} else {
		l[local].Value.(ast.Object).Insert(key, value)
	}
}

// dot is a member of a value; nil where there is none.
func dot(source, key *ast.Term) *ast.Term {
	if source == nil || key == nil {
		return nil
	}
	switch v := source.Value.(type) {
	case ast.Object:
		return v.Get(key)
	case *ast.Array:
		return v.Get(key)
	case ast.Set:
		if v.Contains(key) {
			return key
		}
	}
	return nil
}

func length(term *ast.Term) int {
	switch v := term.Value.(type) {
	case ast.String:
		return len([]rune(string(v)))
	case interface{ Len() int }: // array, set, object
		return v.Len()
	}
	return 0
}

// merge is two documents in one, as rules are laid over base documents: of what both have
// and cannot be merged, the first.
func merge(a, b *ast.Term) *ast.Term {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	over, ok := a.Value.(ast.Object)
	if !ok {
		return a
	}
	under, ok := b.Value.(ast.Object)
	if !ok {
		return a
	}
	merged := ast.NewObject()
	under.Foreach(func(k, v *ast.Term) {
		if over.Get(k) == nil {
			merged.Insert(k, v)
		}
	})
	over.Foreach(func(k, v *ast.Term) { merged.Insert(k, merge(v, under.Get(k))) })
	return ast.NewTerm(merged)
}

// upsert is a document with another value at a path. What is in the way is replaced.
func upsert(document *ast.Term, path []*ast.Term, value *ast.Term) *ast.Term {
	if len(path) == 0 {
		return value
	}
	changed := ast.NewObject()
	var below *ast.Term
	if document != nil {
		if object, ok := document.Value.(ast.Object); ok {
			object.Foreach(func(k, v *ast.Term) { changed.Insert(k, v) })
			below = object.Get(path[0])
		}
	}
	changed.Insert(path[0], upsert(below, path[1:], value))
	return ast.NewTerm(changed)
}
