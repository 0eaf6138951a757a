package policies

import (
	"context"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// slowest is the expression that most of an evaluation's time went into, or is stuck in;
// nil where that cannot be told. OPA's own profiler tells when an evaluation has ended,
// and one that is inside a builtin has not.
func (e *Engine) slowest(ctx context.Context, s *Snapshot, in Input) *ast.Location {
	ctx, cancel := context.WithTimeout(ctx, patience*e.limits.Answer)
	defer cancel()
	watch := &stopwatch{spent: map[string]time.Duration{}, places: map[string]*ast.Location{}}
	// Its error is that of the evaluation which is being explained.
	_, _ = watched(ctx, &e.counts.watchdog, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Trace(ctx, in, watch) })
	return watch.longest()
}

// stopwatch gives the time between two events of an evaluation to the expression of the
// first. It may be read while the evaluation runs.
type stopwatch struct {
	mu     sync.Mutex
	at     *ast.Location
	since  time.Time
	spent  map[string]time.Duration
	places map[string]*ast.Location
}

// Enabled implements topdown.QueryTracer.
func (*stopwatch) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*stopwatch) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *stopwatch) TraceEvent(event topdown.Event) {
	if event.Op != topdown.EvalOp && event.Op != topdown.RedoOp {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lap()
	w.at = event.Location
}

// lap is called with mu held.
func (w *stopwatch) lap() {
	now := time.Now()
	if w.at != nil {
		place := placeOf(w.at)
		w.spent[place] += now.Sub(w.since)
		w.places[place] = w.at
	}
	w.since = now
}

func (w *stopwatch) longest() *ast.Location {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lap()
	var found *ast.Location
	for place, spent := range w.spent {
		if found == nil || spent > w.spent[placeOf(found)] {
			found = w.places[place]
		}
	}
	return found
}
