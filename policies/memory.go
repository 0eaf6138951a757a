package policies

import (
	"context"
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
	if decision, ok := m.recall(k); ok {
		return decision, nil
	}
	type answer struct {
		decision Decision
		err      error
	}
	answered := make(chan answer, 1)
	m.counts.watchdog.workers.do(func() {
		value, err, _ := m.asked.Do(string(k[:]), func() (any, error) { return m.evaluate(ctx, k, evaluate) })
		decision, _ := value.(Decision)
		answered <- answer{decision, err}
	})
	select {
	case a := <-answered:
		return a.decision, a.err
	case <-ctx.Done():
		return Decision{}, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
	}
}

// recall returns what is remembered under k.
func (m *memory) recall(k key) (Decision, bool) {
	decision, ok := m.decisions.Get(k)
	if ok {
		m.counts.hits.Add(1)
		decision.Remembered = true
	}
	return decision, ok
}

// evaluate evaluates for all that ask until its deadline. Who asks when it is overdue is
// answered by another evaluation.
func (m *memory) evaluate(ctx context.Context, k key, evaluate func(context.Context) (Decision, error)) (Decision, error) {
	if decision, ok := m.recall(k); ok {
		return decision, nil // by an evaluation that ended since it was asked for
	}
	if n := m.counts.watchdog.abandoned.Load(); n >= maxAbandoned {
		return Decision{}, &Fault{Kind: TimedOut, Err: fmt.Errorf("%d earlier evaluations have not ended yet", n)}
	}
	m.counts.misses.Add(1)
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		bounded, cancel := context.WithDeadlineCause(detached, deadline, context.DeadlineExceeded)
		defer cancel()
		defer m.counts.watchdog.overdue(deadline, func() { m.asked.Forget(string(k[:])) })()
		detached = bounded
	}
	decision, err := recovered(detached, evaluate)
	if err == nil {
		m.decisions.Add(k, decision)
	}
	return decision, err
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
