package plan

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// call calls a function of the plan or a builtin.
func (a *assembler) call(s *ir.CallStmt) (step, error) {
	args := make([]operand, len(s.Args))
	for i, arg := range s.Args {
		args[i] = a.operand(arg)
	}
	result := a.local(s.Result)
	if i, ok := a.names[s.Func]; ok {
		return func(r *run, l []*ast.Term) outcome {
			var few [4]*ast.Term
			given := few[:0]
			for i := range args {
				given = append(given, args[i].of(l))
			}
			term, o := r.call(i, given)
			if o != on {
				return o
			}
			l[result] = term
			return when(term != nil)
		}, nil
	}
	builtin, declared := topdown.GetBuiltin(s.Func), ast.BuiltinMap[s.Func]
	if builtin == nil || declared == nil {
		return nil, fmt.Errorf("there is no function %s", s.Func)
	}
	whole := func(r *run, l []*ast.Term) outcome {
		r.operands, r.outputs = r.operands[:0], r.outputs[:0]
		for i := range args {
			r.operands = append(r.operands, args[i].of(l))
		}
		if err := builtin(r.builtin, r.operands, r.captured); err != nil {
			if r.strict || errors.As(err, new(topdown.Halt)) {
				return r.fail(err)
			}
			return undefined
		}
		if r.cancel.Cancelled() {
			return r.fail(errCancelled)
		}
		switch {
		case declared.Relation:
			l[result] = ast.ArrayTerm(append([]*ast.Term(nil), r.outputs...)...)
		case len(r.outputs) == 0:
			l[result] = nil
			return when(declared.Decl.Result() == nil)
		default:
			l[result] = r.outputs[0]
		}
		return on
	}
	if s.Func == ast.InternalTemplateString.Name {
		return template(args[0], result, whole), nil
	}
	return whole, nil
}

// template puts the parts of a template together, as its builtin does where they are more
// than text and numbers.
func template(parts operand, result int, builtin step) step {
	return func(r *run, l []*ast.Term) outcome {
		if term := parts.here(l); term != nil {
			if grows, ok := term.Value.(*list); ok {
				var room [128]byte
				if text, ok := grows.text(room[:0]); ok {
					l[result] = ast.StringTerm(string(text))
					return on
				}
			}
		}
		return builtin(r, l)
	}
}

// callDynamic calls the rule whose path is made of values. Where there is none the base
// document is read, in the next block; where it is undefined that is not.
func (a *assembler) callDynamic(s *ir.CallDynamicStmt) step {
	args, path := make([]operand, len(s.Args)), make([]operand, len(s.Path))
	for i, arg := range s.Args {
		args[i] = a.of(arg)
	}
	for i, part := range s.Path {
		path[i] = a.operand(part)
	}
	result, paths := a.local(s.Result), a.program.paths
	return func(r *run, l []*ast.Term) outcome {
		var name []byte
		for i := range path {
			term := path[i].of(l)
			if term == nil {
				return undefined
			}
			part, ok := term.Value.(ast.String)
			if !ok {
				return undefined
			}
			name = appendPart(name, string(part))
		}
		i, ok := paths[string(name)]
		if !ok {
			return undefined
		}
		var few [2]*ast.Term
		given := few[:0]
		for i := range args {
			given = append(given, args[i].of(l))
		}
		term, o := r.call(i, given)
		switch {
		case o != on:
			return o
		case term == nil:
			return undefined + 3
		}
		l[result] = term
		return on
	}
}

// pathOf is the name by which a function is found under the path of its rules. A part may
// hold anything: it may come from a pod.
func pathOf(parts ...string) string {
	var path []byte
	for _, part := range parts {
		path = appendPart(path, part)
	}
	return string(path)
}

func appendPart(path []byte, part string) []byte { return strconv.AppendQuote(path, part) }
