package policies

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrAbandoned marks work that went on after its time: OPA asks whether to stop between
// expressions only, and a sort of millions or a regular expression over megabytes is one.
var ErrAbandoned = errors.New("does not stop when it is told to")

// grace is what work gets after its time to notice the end of its context. OPA does in
// microseconds, unless it is inside a builtin.
const grace = 100 * time.Millisecond

// watchdog runs what may not end in time. It cannot be stopped from outside, so it is
// left behind, and counted until it ends.
type watchdog struct {
	abandoned atomic.Int64
	workers   workers
}

// overdue counts work that begins now from a moment after its deadline until it ends, which
// the function that it returns says. left is called when it is left behind.
func (w *watchdog) overdue(deadline time.Time, left func()) (ended func()) {
	timer := time.AfterFunc(time.Until(deadline)+grace, func() {
		w.abandoned.Add(1)
		left()
	})
	return func() {
		if !timer.Stop() {
			w.abandoned.Add(-1)
		}
	}
}

// watched returns what work returns, or [ErrAbandoned] if work still runs a moment after
// the end of ctx. A panic of work is the caller's, unless work was abandoned.
func watched[T any](ctx context.Context, w *watchdog, work func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
		panic any
	}
	done := make(chan outcome, 1)
	w.workers.do(func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.value, o.err = work(ctx)
	})
	o, ended := outcome{}, false
	select {
	case o = <-done:
		ended = true
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case o = <-done:
			ended = true
		case <-timer.C:
		}
	}
	if !ended {
		w.abandoned.Add(1)
		go func() {
			<-done
			w.abandoned.Add(-1)
		}()
		return o.value, fmt.Errorf("%w: %w", ErrAbandoned, context.Cause(ctx))
	}
	if o.panic != nil {
		panic(o.panic)
	}
	return o.value, o.err
}
