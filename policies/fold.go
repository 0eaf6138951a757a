package policies

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/dependencies"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// facts are the values of rules that do not read the input. They are the same for every
// pod, so a snapshot works them out once, for the rules and for the program.
type facts struct {
	topdown.VirtualCache
	planned plan.Facts
}

// constant lists the rules that do not read the input, by their refs. Functions are not
// among them, nor rules such as `a.b` beside `a.c`, which have no value together.
func constant(compiler *ast.Compiler) ([]ast.Ref, error) {
	met := map[string]ast.Ref{}
	apart := map[string]bool{}
	for _, module := range compiler.Modules {
		for _, rule := range module.Rules {
			whole := len(module.Package.Path) + 1
			ref := rule.Ref()[:whole]
			met[ref.String()] = ref
			if len(rule.Head.Args) > 0 || slices.ContainsFunc(rule.Ref()[whole:], func(key *ast.Term) bool { return key.IsGround() }) {
				apart[ref.String()] = true
			}
		}
	}
	var refs []ast.Ref
	for name, ref := range met {
		if apart[name] {
			continue
		}
		bases, err := dependencies.Base(compiler, ast.NewTerm(ref))
		if err != nil {
			return nil, fmt.Errorf("list what %s reads: %w", ref, err)
		}
		if !slices.ContainsFunc(bases, func(base ast.Ref) bool { return base.HasPrefix(ast.InputRootRef) }) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// factTime is what one fact may take. It is what an answer may, see [Limits].
const factTime = 250 * time.Millisecond

// newFacts evaluates rules over a store. A rule that errs is left out, and so is one that
// takes too long with all after it: a decision that reads it errs or is late again, and the
// self-test says so.
func newFacts(ctx context.Context, p *policy, store storage.Store, watch *watchdog) (facts, error) {
	known := facts{VirtualCache: topdown.NewVirtualCache()}
	put := known.Put
	if p.program != nil {
		known.planned = p.program.Facts()
		put = func(ref ast.Ref, value *ast.Term) {
			known.Put(ref, value)
			p.program.Know(known.planned, ref, value)
		}
	}
	transaction, err := store.NewTransaction(ctx)
	if err != nil {
		return known, err
	}
	defer store.Abort(ctx, transaction)
	const result = ast.Var("result")
	for _, ref := range p.constant {
		query, err := p.compiler.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(result), ast.NewTerm(ref))))
		if err != nil {
			return known, fmt.Errorf("compile %s: %w", ref, err)
		}
		bounded, cancel := context.WithTimeout(ctx, factTime)
		results, err := watched(bounded, watch, func(ctx context.Context) (topdown.QueryResultSet, error) {
			stop := topdown.NewCancel()
			defer context.AfterFunc(ctx, stop.Cancel)()
			return topdown.NewQuery(query).WithCompiler(p.compiler).WithStore(store).WithTransaction(transaction).
				WithStrictBuiltinErrors(true).WithCancel(stop).Run(ctx)
		})
		late := bounded.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return known, context.Cause(ctx)
		case late:
			return known, nil
		case err != nil:
		case len(results) == 0:
			put(ref, nil) // undefined
		default:
			put(ref, results[0][result])
		}
	}
	return known, nil
}

// cache is what one evaluation starts with. What it finds out it keeps to itself.
func (f facts) cache() topdown.VirtualCache {
	return &layered{VirtualCache: topdown.NewVirtualCache(), below: f.VirtualCache}
}

// layered is a cache over another one that is only read. Under a `with` that replaces
// input or data nothing of it counts.
type layered struct {
	topdown.VirtualCache
	below topdown.VirtualCache
	depth int
}

// Push implements topdown.VirtualCache.
func (l *layered) Push() {
	l.depth++
	l.VirtualCache.Push()
}

// Pop implements topdown.VirtualCache.
func (l *layered) Pop() {
	l.depth--
	l.VirtualCache.Pop()
}

// Get implements topdown.VirtualCache.
func (l *layered) Get(ref ast.Ref) (*ast.Term, bool) {
	term, undefined := l.VirtualCache.Get(ref)
	if term == nil && !undefined && l.depth == 0 {
		return l.below.Get(ref)
	}
	return term, undefined
}
