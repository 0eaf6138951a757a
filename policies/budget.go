package policies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

const (
	// attempts are how often a self-test question may be asked until one answer is in
	// time: a machine that is busy, or that collects garbage, is late now and then.
	attempts = 3
	// patience is how many times its budget an answer may take before it is not waited
	// for: long enough to say how slow a policy is, and short where it never ends.
	patience = 4
)

// selfTest asks the policy over a catalog without classes.
func (e *Engine) selfTest(ctx context.Context, p *policy) error {
	return e.askAll(ctx, p, catalog.Build(nil, nil), func(err error) error {
		var fault *Fault
		if errors.As(err, &fault) && (fault.Kind == Undefined || fault.Kind == BadShape) {
			// OPA does not say which rule it was: there is one that can be.
			rules := p.compiler.GetRulesExact(ast.MustParseRef(entrypoint))
			return locate(rules[0].Location, hintForShape(err), err)
		}
		return err
	})
}

// askAll asks the questions of the self-test. Whatever else fails than the time is put
// by tell. After the first answer that is late it asks no more: the next would be late too.
func (e *Engine) askAll(ctx context.Context, p *policy, c *catalog.Catalog, tell func(error) error) error {
	late := false
	s, err := newSnapshot(ctx, p, c, &e.counts)
	if err != nil {
		return err
	}
	return RunSelfTests(&p.config, func(test SelfTest) error {
		if late {
			return nil
		}
		took, err := e.ask(ctx, s, test.Input)
		switch {
		case errors.Is(err, errLate):
			late = true
			return e.explainLate(ctx, s, test.Input, took)
		case err != nil:
			return tell(err)
		}
		return nil
	})
}

// errLate marks an answer that took longer than [Limits.Answer].
var errLate = errors.New("late")

// ask returns how long the fastest of some attempts took; an answer in time ends them.
func (e *Engine) ask(ctx context.Context, s *Snapshot, in Input) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range attempts {
		bounded, cancel := context.WithTimeout(ctx, patience*e.limits.Answer)
		begin := time.Now()
		_, err := watched(bounded, &e.counts.watchdog, func(ctx context.Context) (Decision, error) { return s.evaluate(ctx, in) })
		took, ended := time.Since(begin), bounded.Err() == nil
		cancel()
		switch best = min(best, took); {
		case ctx.Err() != nil:
			return best, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
		case errors.Is(err, ErrAbandoned):
			return best, errLate
		case ended && err != nil:
			return best, err
		case ended && took <= e.limits.Answer:
			return best, nil
		}
	}
	return best, errLate
}

// explainLate says how late an answer was, and where the time went.
func (e *Engine) explainLate(ctx context.Context, s *Snapshot, in Input, took time.Duration) error {
	verb := "took"
	if limit := patience * e.limits.Answer; took >= limit {
		verb, took = "takes more than", limit
	}
	late := &LocatedError{
		Hint: "pods wait for their answer: bound what is iterated over, put cheap conditions first, and sort and match short lists only",
		Err:  fmt.Errorf("an answer %s %s, and %s is the most", verb, took.Round(duration(took)), e.limits.Answer),
	}
	if where := e.slowest(ctx, s, in); where != nil {
		late.File, late.Line, late.Column = where.File, where.Row, where.Col
	}
	return late
}

// duration is what a duration is rounded to for people: to three digits or less.
func duration(d time.Duration) time.Duration {
	if d > time.Second {
		return 10 * time.Millisecond
	}
	return time.Millisecond
}
