package policies

import (
	"context"
	"errors"
	"fmt"
)

// maxAbandoned is how many evaluations may be left behind before a decision is refused
// instead of begun: each holds a processor and its memory until it ends.
const maxAbandoned = 16

// Decide is [Snapshot.Decide] for those who must answer at their deadline: it returns a
// moment after the end of ctx also where the evaluation is inside a builtin, which is
// then left behind and counted.
//
// It evaluates in a goroutine of its own. That costs 2 µs, and the growth of another
// stack, a third of an evaluation; a caller that is a fresh goroutine itself, as a handler
// of HTTP/2 is, saves the same in its own.
func (e *Engine) Decide(ctx context.Context, s *Snapshot, in Input) (Decision, error) {
	if n := e.Abandoned(); n >= maxAbandoned {
		return Decision{}, &Fault{Kind: TimedOut, Err: fmt.Errorf("%d earlier evaluations have not ended yet", n)}
	}
	decision, err := watched(ctx, &e.watchdog, func(ctx context.Context) (Decision, error) { return s.Decide(ctx, in) })
	if errors.Is(err, ErrAbandoned) {
		return Decision{}, &Fault{Kind: TimedOut, Err: err}
	}
	return decision, err
}
