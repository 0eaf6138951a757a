package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
)

// assembler makes steps of the statements of a plan.
type assembler struct {
	policy  *ir.Policy
	program *Program
	names   map[string]int // functions by name

	// Of the function that is being made:
	locals int
	grow   map[ir.Local]bool // locals in which arrays and sets grow
}

// function makes the steps of a function or query, and counts its locals.
func (a *assembler) function(blocks []*ir.Block, given []ir.Local) ([]step, int, error) {
	a.locals, a.grow = 0, map[ir.Local]bool{}
	for _, local := range given {
		a.local(local)
	}
	for _, block := range blocks {
		if err := ir.Walk(growing{a}, block); err != nil {
			return nil, 0, err
		}
	}
	steps, err := a.blocks(blocks)
	return steps, a.locals, err
}

// growing notes the locals in which arrays and sets grow.
type growing struct{ *assembler }

func (growing) Before(any) {}
func (growing) After(any)  {}
func (g growing) Visit(x any) (ir.Visitor, error) {
	switch made := x.(type) {
	case *ir.MakeArrayStmt:
		g.grow[made.Target] = true
	case *ir.SetAddStmt:
		g.grow[made.Set] = true
	}
	return g, nil
}

// local is the place of a local in the frame.
func (a *assembler) local(l ir.Local) int {
	a.locals = max(a.locals, int(l)+1)
	return int(l)
}

// blocks makes one step of each block.
func (a *assembler) blocks(blocks []*ir.Block) ([]step, error) {
	steps := make([]step, 0, len(blocks))
	for _, block := range blocks {
		inner, err := a.block(block)
		if err != nil {
			return nil, err
		}
		steps = append(steps, func(r *run, l []*ast.Term) outcome { return r.steps(inner, l).outside() })
	}
	return steps, nil
}

func (a *assembler) block(block *ir.Block) ([]step, error) {
	var steps []step
	for _, statement := range block.Stmts {
		if _, ok := statement.(*ir.NopStmt); ok {
			continue
		}
		s, err := a.statement(statement)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// operand is what a statement works on: a constant or a local.
type operand struct {
	constant *ast.Term
	local    int
	grows    bool // the local may hold what grows
}

// of is its value in a frame; nil where that is undefined.
func (o *operand) of(l []*ast.Term) *ast.Term {
	if o.constant != nil {
		return o.constant
	}
	term := l[o.local]
	if o.grows && term != nil {
		return grown(term)
	}
	return term
}

// here is the same, also where it grows.
func (o *operand) here(l []*ast.Term) *ast.Term {
	if o.constant != nil {
		return o.constant
	}
	return l[o.local]
}

func (a *assembler) operand(o ir.Operand) operand {
	switch value := o.Value.(type) {
	case ir.Bool:
		return operand{constant: ast.InternedTerm(bool(value))}
	case ir.StringIndex:
		return operand{constant: a.text(int(value))}
	case ir.Local:
		return a.of(value)
	}
	panic(fmt.Sprintf("operand %T", o.Value)) // the three that there are
}

func (a *assembler) of(l ir.Local) operand {
	return operand{local: a.local(l), grows: a.grow[l]}
}

func (a *assembler) text(i int) *ast.Term {
	return ast.InternedTerm(a.policy.Static.Strings[i].Value)
}

// statement makes the step of one.
func (a *assembler) statement(statement ir.Stmt) (step, error) {
	switch s := statement.(type) {
	case *ir.BlockStmt:
		blocks, err := a.blocks(s.Blocks)
		if err != nil {
			return nil, err
		}
		return func(r *run, l []*ast.Term) outcome {
			return r.steps(blocks, l)
		}, nil
	case *ir.BreakStmt:
		out := outcome(s.Index) + 1
		return func(*run, []*ast.Term) outcome { return out }, nil
	case *ir.ReturnLocalStmt:
		source := a.of(s.Source)
		return func(r *run, l []*ast.Term) outcome {
			r.value = source.of(l)
			return returned
		}, nil
	case *ir.ResultSetAddStmt:
		value := a.of(s.Value)
		return func(r *run, l []*ast.Term) outcome {
			r.results.Add(value.of(l))
			return on
		}, nil
	case *ir.CallStmt:
		return a.call(s)
	case *ir.CallDynamicStmt:
		return a.callDynamic(s), nil
	case *ir.ScanStmt:
		return a.scan(s)
	case *ir.NotStmt:
		body, err := a.block(s.Block)
		if err != nil {
			return nil, err
		}
		return func(r *run, l []*ast.Term) outcome {
			o := r.steps(body, l)
			if o == on {
				return undefined
			}
			return o.outside()
		}, nil
	case *ir.WithStmt:
		return a.with(s)

	case *ir.IsDefinedStmt:
		return a.is(s.Source, func(t *ast.Term) bool { return t != nil }), nil
	case *ir.IsUndefinedStmt:
		return a.is(s.Source, func(t *ast.Term) bool { return t == nil }), nil
	case *ir.IsArrayStmt:
		return a.kind(s.Source, func(v ast.Value) bool { _, ok := v.(*ast.Array); return ok }), nil
	case *ir.IsObjectStmt:
		return a.kind(s.Source, func(v ast.Value) bool { _, ok := v.(ast.Object); return ok }), nil
	case *ir.IsSetStmt:
		return a.kind(s.Source, func(v ast.Value) bool { _, ok := v.(ast.Set); return ok }), nil
	case *ir.EqualStmt:
		x, y := a.operand(s.A), a.operand(s.B)
		return func(_ *run, l []*ast.Term) outcome { return when(equal(x.of(l), y.of(l))) }, nil
	case *ir.NotEqualStmt:
		x, y := a.operand(s.A), a.operand(s.B)
		return func(_ *run, l []*ast.Term) outcome { return when(!equal(x.of(l), y.of(l))) }, nil

	case *ir.DotStmt:
		source, key, target := a.operand(s.Source), a.operand(s.Key), a.local(s.Target)
		return func(_ *run, l []*ast.Term) outcome {
			found := dot(source.of(l), key.of(l))
			l[target] = found
			return when(found != nil)
		}, nil
	case *ir.LenStmt:
		source, target := a.operand(s.Source), a.local(s.Target)
		return func(_ *run, l []*ast.Term) outcome {
			l[target] = ast.InternedTerm(length(source.of(l)))
			return on
		}, nil

	case *ir.AssignIntStmt:
		return a.constant(s.Target, ast.InternedTerm(s.Value)), nil
	case *ir.MakeNullStmt:
		return a.constant(s.Target, ast.InternedNullTerm), nil
	case *ir.MakeNumberIntStmt:
		return a.constant(s.Target, ast.InternedTerm(s.Value)), nil
	case *ir.MakeNumberRefStmt:
		number := json.Number(a.policy.Static.Strings[s.Index].Value)
		return a.constant(s.Target, ast.NumberTerm(number)), nil
	case *ir.ResetLocalStmt:
		return a.constant(s.Target, nil), nil
	case *ir.AssignVarStmt:
		source, target := a.operand(s.Source), a.local(s.Target)
		return func(_ *run, l []*ast.Term) outcome {
			l[target] = source.of(l)
			return on
		}, nil
	case *ir.AssignVarOnceStmt:
		source, target, before := a.operand(s.Source), a.local(s.Target), a.of(s.Target)
		return func(r *run, l []*ast.Term) outcome {
			value := source.of(l)
			if had := before.of(l); had != nil && !equal(had, value) {
				return r.fail(errConflict)
			}
			l[target] = value
			return on
		}, nil

	case *ir.MakeArrayStmt:
		target, capacity := a.local(s.Target), int(s.Capacity)
		return func(_ *run, l []*ast.Term) outcome {
			l[target] = newList(capacity)
			return on
		}, nil
	case *ir.MakeSetStmt:
		return a.constant(s.Target, emptySet), nil
	case *ir.MakeObjectStmt:
		return a.constant(s.Target, emptyObject), nil
	case *ir.ArrayAppendStmt:
		array, value := a.local(s.Array), a.operand(s.Value)
		return func(_ *run, l []*ast.Term) outcome {
			l[array].Value.(*list).append(value.here(l))
			return on
		}, nil
	case *ir.SetAddStmt:
		set, value := a.local(s.Set), a.operand(s.Value)
		return func(_ *run, l []*ast.Term) outcome {
			add(l, set, value.of(l))
			return on
		}, nil
	case *ir.ObjectInsertStmt:
		object, key, value := a.local(s.Object), a.operand(s.Key), a.operand(s.Value)
		return func(_ *run, l []*ast.Term) outcome {
			put(l, object, key.of(l), value.of(l))
			return on
		}, nil
	case *ir.ObjectInsertOnceStmt:
		object, key, value := a.local(s.Object), a.operand(s.Key), a.operand(s.Value)
		return func(r *run, l []*ast.Term) outcome {
			into, k, v := l[object].Value.(ast.Object), key.of(l), value.of(l)
			if had := into.Get(k); had != nil {
				if !equal(had, v) {
					return r.fail(errConflict)
				}
				return on
			}
			put(l, object, k, v)
			return on
		}, nil
	case *ir.ObjectMergeStmt:
		x, y, target := a.of(s.A), a.of(s.B), a.local(s.Target)
		return func(_ *run, l []*ast.Term) outcome {
			l[target] = merge(x.of(l), y.of(l))
			return on
		}, nil
	}
	var text bytes.Buffer
	_ = ir.Pretty(&text, statement) // into memory
	return nil, fmt.Errorf("statement %T is not known: %s", statement, &text)
}

// when makes a condition's outcome.
func when(holds bool) outcome {
	if holds {
		return on
	}
	return undefined
}

func (a *assembler) constant(target ir.Local, term *ast.Term) step {
	t := a.local(target)
	return func(_ *run, l []*ast.Term) outcome {
		l[t] = term
		return on
	}
}

func (a *assembler) is(source ir.Local, holds func(*ast.Term) bool) step {
	s := a.local(source)
	return func(_ *run, l []*ast.Term) outcome { return when(holds(l[s])) }
}

func (a *assembler) kind(source ir.Operand, holds func(ast.Value) bool) step {
	s := a.operand(source)
	return func(_ *run, l []*ast.Term) outcome {
		term := s.of(l)
		return when(term != nil && holds(term.Value))
	}
}
