package policies

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

// maxAbandoned is how many evaluations may be left behind before a decision is refused
// instead of begun: each holds a processor and its memory until it ends.
const maxAbandoned = 16

// remembered bounds the decisions that a snapshot remembers. One takes about a kilobyte.
const remembered = 8192

// Memory is what an engine has remembered so far, over all policies that were in force.
type Memory struct {
	// Hits are decisions that were remembered; Misses are evaluations.
	Hits, Misses uint64
	// Evicted are those that made room for others; Size is how many there are now.
	Evicted uint64
	Size    int
}

// counts are the counters of [Memory].
type counts struct {
	hits, misses, evicted atomic.Uint64
	watchdog              watchdog
}

// memory holds the decisions of one policy over one catalog, by what they depend on.
type memory struct {
	decisions *lru.Cache[key, Decision]
	asked     singleflight.Group
	counts    *counts
}

func newMemory(c *counts) (*memory, error) {
	decisions, err := lru.NewWithEvict(remembered, func(key, Decision) { c.evicted.Add(1) })
	return &memory{decisions: decisions, counts: c}, err
}

// decide returns what is remembered under k, or evaluates once for all that ask at the same
// time. An evaluation outlives the caller that started it, up to that one's deadline, so
// that a caller that goes away takes nobody along. A caller is answered at its deadline,
// whatever a builtin does that cannot be interrupted: the evaluation is left behind then.
// Errors are not remembered.
func (m *memory) decide(ctx context.Context, k key, evaluate func(context.Context) (Decision, error)) (Decision, error) {
	if decision, ok := m.decisions.Get(k); ok {
		m.counts.hits.Add(1)
		decision.Remembered = true
		return decision, nil
	}
	result := m.asked.DoChan(string(k[:]), func() (any, error) {
		if n := m.counts.watchdog.abandoned.Load(); n >= maxAbandoned {
			return Decision{}, &Fault{Kind: TimedOut, Err: fmt.Errorf("%d earlier evaluations have not ended yet", n)}
		}
		m.counts.misses.Add(1)
		detached, cancel := context.WithoutCancel(ctx), context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok {
			detached, cancel = context.WithDeadlineCause(detached, deadline, context.DeadlineExceeded)
		}
		defer cancel()
		decision, err := watched(detached, &m.counts.watchdog, func(ctx context.Context) (Decision, error) { return recovered(ctx, evaluate) })
		switch {
		case err == nil:
			m.decisions.Add(k, decision)
		case errors.Is(err, ErrAbandoned):
			err = &Fault{Kind: TimedOut, Err: err}
		}
		return decision, err
	})
	select {
	case r := <-result:
		decision, _ := r.Val.(Decision)
		return decision, r.Err
	case <-ctx.Done():
		return Decision{}, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
	}
}

// recovered turns a panic into a fault: it would end the process from a goroutine that no
// server watches.
func recovered(ctx context.Context, evaluate func(context.Context) (Decision, error)) (d Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Kind: Failed, Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return evaluate(ctx)
}
