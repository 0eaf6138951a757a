package plan

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
)

// scan runs a block for each member of a collection.
func (a *assembler) scan(s *ir.ScanStmt) (step, error) {
	body, err := a.block(s.Block)
	if err != nil {
		return nil, err
	}
	source, key, value := a.of(s.Source), a.local(s.Key), a.local(s.Value)
	each := func(r *run, l []*ast.Term, k, v *ast.Term) outcome {
		if r.cancel.Cancelled() {
			return r.fail(errCancelled)
		}
		l[key], l[value] = k, v
		if o := r.steps(body, l); o != undefined {
			return o
		}
		return on // with the next
	}
	return func(r *run, l []*ast.Term) outcome {
		over := source.of(l)
		if over == nil {
			return on
		}
		o := on
		switch v := over.Value.(type) {
		case *ast.Array:
			for i := 0; i < v.Len() && o == on; i++ {
				o = each(r, l, ast.InternedTerm(i), v.Elem(i))
			}
		case ast.Set:
			if v.Len() == 0 {
				return on
			}
			for _, member := range v.Slice() {
				if o = each(r, l, member, member); o != on {
					break
				}
			}
		case ast.Object:
			o = eachMember(v, func(k, v *ast.Term) outcome { return each(r, l, k, v) })
		}
		// Out of the member's block and of the scan's own.
		return o.outside().outside()
	}, nil
}

// eachMember stops at the first outcome that is not on.
func eachMember(object ast.Object, each func(k, v *ast.Term) outcome) (o outcome) {
	if object.Len() == 0 {
		return on
	}
	object.Until(func(k, v *ast.Term) bool {
		o = each(k, v)
		return o != on
	})
	return o
}

// with replaces input or data, or a part of it, while a block runs.
func (a *assembler) with(s *ir.WithStmt) (step, error) {
	body, err := a.block(s.Block)
	if err != nil {
		return nil, err
	}
	local, value := a.local(s.Local), a.operand(s.Value)
	path := make([]*ast.Term, len(s.Path))
	for i, part := range s.Path {
		path[i] = a.text(part)
	}
	return func(r *run, l []*ast.Term) outcome {
		before, memo, calls := l[local], r.memo, r.calls
		r.memo, r.calls = make([]known, len(memo)), map[call]*called{}
		l[local] = upsert(before, path, value.of(l))
		o := r.steps(body, l)
		l[local], r.memo, r.calls = before, memo, calls
		if o == undefined {
			return o
		}
		return o.outside()
	}, nil
}
