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
	// time: the first ones warm up, and some help to collect garbage.
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
			return e.explainLate(ctx, s, test.Input, took, errors.Is(err, errStopped))
		case err != nil:
			return tell(err)
		}
		e.compare(ctx, p, s, test)
		return nil
	})
}

// compare lets the rules of a policy decide alone if its plan answers otherwise.
func (e *Engine) compare(ctx context.Context, p *policy, s *Snapshot, test SelfTest) {
	bounded, cancel := context.WithTimeout(ctx, patience*e.limits.Answer)
	defer cancel()
	_, err := watched(bounded, &e.counts.watchdog, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Agree(ctx, test.Input)
	})
	if err != nil && !errors.Is(err, ErrAbandoned) {
		p.program, p.unplanned = nil, &SelfTestError{Test: test, Err: err}
	}
}

// errLate marks an answer that took longer than [Limits.Answer], and errStopped one that
// would have taken even longer.
var (
	errLate    = errors.New("late")
	errStopped = fmt.Errorf("stopped: %w", errLate)
)

// ask returns how long a processor worked on the fastest of some answers; one in time ends
// the attempts. Where a machine is so busy that an evaluation does not even get its budget,
// it is waited for twice as long.
func (e *Engine) ask(ctx context.Context, s *Snapshot, in Input) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	wait := patience * e.limits.Answer
	for late := 0; late < attempts; {
		bounded, cancel := context.WithTimeout(ctx, wait)
		took, err := watched(bounded, &e.counts.watchdog, func(ctx context.Context) (took time.Duration, err error) {
			took = cpuTime(func() { _, err = s.Evaluate(ctx, in) })
			return took, err
		})
		ended := bounded.Err() == nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return best, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
		case errors.Is(err, ErrAbandoned):
			return wait, errStopped
		case ended && err != nil:
			return took, err
		case ended && took <= e.limits.Answer:
			return took, nil
		case !ended && took <= e.limits.Answer:
			wait *= 2
		case !ended:
			return took, errStopped
		default:
			best = min(best, took)
			late++
		}
	}
	return best, errLate
}

// explainLate says how late an answer was, and where the time went.
func (e *Engine) explainLate(ctx context.Context, s *Snapshot, in Input, took time.Duration, stopped bool) error {
	verb := "took"
	if stopped {
		verb = "takes more than"
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
