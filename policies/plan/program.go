package plan

import (
	"context"
	"fmt"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// Program is a planned query. It may run for any number of goroutines at once.
type Program struct {
	main      []step // the query
	locals    int    // of the query
	functions []*function
	paths     map[string]int // functions by [pathOf] their rules, as g0, router, decision
	idle      sync.Pool      // of runs that have ended
}

// function is a planned rule or Rego function.
type function struct {
	params []ir.Local
	body   []step
	locals int // that a frame has
}

// Facts are values of rules that are known before a program runs.
type Facts []known

// Facts are none yet.
func (p *Program) Facts() Facts { return make(Facts, len(p.functions)) }

// Know adds the value of a rule to facts; nil is that it is undefined. A rule that the
// program does not come by is left out.
func (p *Program) Know(facts Facts, rule ast.Ref, value *ast.Term) {
	path := []string{"g0"} // the planner's name for rules under no replacement
	for _, term := range rule[1:] {
		name, ok := term.Value.(ast.String)
		if !ok {
			return
		}
		path = append(path, string(name))
	}
	if i, ok := p.paths[pathOf(path...)]; ok && len(p.functions[i].params) == 2 {
		facts[i] = known{term: value, done: true}
	}
}

// Options are what one run is given.
type Options struct {
	Input    *ast.Term // nil for none
	Data     *ast.Term // the base documents
	Facts    Facts
	Strict   bool                   // an error of a builtin ends the run; else it is undefined
	Builtins topdown.BuiltinContext // for those that ask for time, randomness, ...; most need nothing
}

// Run answers the query: a set of objects, each with the values of the query's variables.
// It ends early with the context, but in a builtin that does not notice.
func (p *Program) Run(ctx context.Context, o Options) (ast.Set, error) {
	r := p.begin(o)
	cancel := topdown.NewCancel()
	defer context.AfterFunc(ctx, cancel.Cancel)()
	r.cancel, r.builtin.Context, r.builtin.Cancel = cancel, ctx, cancel
	frame := r.frame(p.locals)
	frame[ir.Input], frame[ir.Data] = o.Input, o.Data
	ended := r.steps(p.main, frame)
	results, err := r.results, r.err
	p.end(r)
	if ended == failed {
		return nil, err
	}
	return results, nil
}

// begin takes what a run needs from one before it, if there is any.
func (p *Program) begin(o Options) *run {
	r, ok := p.idle.Get().(*run)
	if !ok {
		r = &run{program: p, memo: make([]known, len(p.functions)), calls: map[call]*called{}}
		r.captured = r.capture
	}
	copy(r.memo, o.Facts)
	r.strict, r.builtin, r.results = o.Strict, o.Builtins, ast.NewSet()
	if r.builtin.Cache == nil {
		r.builtin.Cache = builtins.Cache{}
	}
	return r
}

// end leaves a run to the next one, without any of its values.
func (p *Program) end(r *run) {
	clear(r.memo)
	clear(r.calls)
	clear(r.stack[:cap(r.stack)])
	clear(r.operands[:cap(r.operands)])
	clear(r.outputs[:cap(r.outputs)])
	*r = run{program: p, memo: r.memo, calls: r.calls, stack: r.stack[:0], operands: r.operands[:0], outputs: r.outputs[:0], captured: r.captured}
	p.idle.Put(r)
}

// run is one evaluation.
type run struct {
	program *Program
	strict  bool
	builtin topdown.BuiltinContext
	cancel  topdown.Cancel

	results ast.Set
	value   *ast.Term // what a function returned
	err     error     // why a step failed

	// What has been called, under the replacements of input and data that are in force:
	memo  []known          // rules
	calls map[call]*called // functions with arguments

	stack    []*ast.Term
	operands []*ast.Term // of a builtin
	outputs  []*ast.Term
	captured func(*ast.Term) error
}

// known is the value of a rule.
type known struct {
	term *ast.Term // nil for undefined
	done bool      // it is known
}

// frame makes room for the locals of a function. A slice that was given out before stays
// what it is.
func (r *run) frame(n int) []*ast.Term {
	if cap(r.stack)-len(r.stack) < n {
		r.stack = make([]*ast.Term, 0, max(512, n))
	}
	at := len(r.stack)
	r.stack = r.stack[:at+n]
	frame := r.stack[at : at+n : at+n]
	clear(frame)
	return frame
}

// step is one statement. It says how the block goes on.
type step func(*run, []*ast.Term) outcome

// outcome of a step: on, or out of so many blocks, of which that of an undefined
// statement is one.
type outcome int

const (
	on        outcome = 0
	undefined outcome = 1
	returned  outcome = -1
	failed    outcome = -2
)

// outside is what an outcome means around the block that it came out of.
func (o outcome) outside() outcome {
	if o > 0 {
		return o - 1
	}
	return o
}

// steps runs a block, and says how it came out of it.
func (r *run) steps(steps []step, l []*ast.Term) outcome {
	for _, s := range steps {
		if o := s(r, l); o != on {
			return o
		}
	}
	return on
}

func (r *run) fail(err error) outcome {
	r.err = err
	return failed
}

// call runs a function, or remembers.
func (r *run) call(i int, args []*ast.Term) (*ast.Term, outcome) {
	f := r.program.functions[i]
	if len(args) > 2 {
		return r.callWith(f, i, args)
	}
	if m := &r.memo[i]; m.done {
		return m.term, on
	}
	memo := r.memo
	term, o := r.evaluate(f, args)
	if o == on {
		memo[i] = known{term: term, done: true}
	}
	return term, o
}

func (r *run) evaluate(f *function, args []*ast.Term) (*ast.Term, outcome) {
	if r.cancel.Cancelled() {
		return nil, r.fail(errCancelled)
	}
	stack := r.stack
	l := r.frame(f.locals)
	for i, param := range f.params {
		l[param] = args[i]
	}
	r.value = nil
	o := r.steps(f.body, l)
	r.stack = stack
	if o == failed {
		return nil, failed
	}
	return r.value, on
}

// capture takes an output of a builtin.
func (r *run) capture(output *ast.Term) error {
	r.outputs = append(r.outputs, output)
	return nil
}

func assemble(policy *ir.Policy) (*Program, error) {
	a := &assembler{policy: policy, program: &Program{paths: map[string]int{}}, names: map[string]int{}}
	for i, f := range policy.Funcs.Funcs {
		a.names[f.Name] = i
		a.program.paths[pathOf(f.Path...)] = i
	}
	for _, f := range policy.Funcs.Funcs {
		body, locals, err := a.function(f.Blocks, append([]ir.Local{f.Return}, f.Params...))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		a.program.functions = append(a.program.functions, &function{params: f.Params, body: body, locals: locals})
	}
	if len(policy.Plans.Plans) != 1 {
		return nil, fmt.Errorf("%d plans: want one", len(policy.Plans.Plans))
	}
	var err error
	a.program.main, a.program.locals, err = a.function(policy.Plans.Plans[0].Blocks, []ir.Local{ir.Input, ir.Data})
	return a.program, err
}
