package main

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

var digits = regexp.MustCompile(`[0-9]+`)

// shown is how many messages of faults are kept.
const shown = 5

// window is the time in which one thing happens, and what became of the pods whose creation
// began in it.
type window struct {
	*disturbance
	Note        string // what took place
	Took        time.Duration
	Connections int // that the Service led to a replica

	began  time.Time
	before stack.ServiceEvents
	cut    int // connections that a replica ended while it owed an answer

	mu        sync.Mutex
	open      int             // calls that are not answered
	latencies []time.Duration // of created pods
	failed    map[cause]int
	wrong     int // pods that were created, and not as they should
	faults    []string
	said      map[string]int // what clients were told of each failure, without what differs
}

func newWindow(d *disturbance, before stack.ServiceEvents) *window {
	return &window{disturbance: d, before: before, failed: map[cause]int{}, said: map[string]int{}, began: time.Now()}
}

// end counts a call that took so long. Wrong is what is wrong with the pod that was created.
func (w *window) end(took time.Duration, err, wrong error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	switch {
	case err != nil:
		w.said[digits.ReplaceAllString(err.Error(), "N")]++
		why := causeOf(err)
		if !slices.Contains(w.excuses, why) {
			why = ours
			w.fault("refused: " + err.Error())
		}
		w.failed[why]++
	case wrong != nil:
		w.wrong++
		w.fault("created, and not as it should be: " + wrong.Error())
	default:
		w.latencies = append(w.latencies, took)
	}
}

// fault keeps the first messages. w.mu is held.
func (w *window) fault(message string) {
	if len(w.faults) < shown {
		w.faults = append(w.faults, message)
	}
}

// close settles the accounts, when no call is open any more.
func (w *window) close(after stack.ServiceEvents) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Took = time.Since(w.began)
	w.Connections, w.cut = after.Led-w.before.Led, after.Cut-w.before.Cut
	// What the client is told of a broken call does not say whether the call was on its way:
	// the Service knows how many connections broke, also those that were kept for the next call.
	// More failures than that have another cause.
	if more := w.failed[broken] - w.cut - (after.Ended - w.before.Ended) - (after.Refused - w.before.Refused); more > 0 {
		w.failed[broken] -= more
		w.failed[ours] += more
		w.fault(fmt.Sprintf("%d calls failed on connections that did not break", more))
	}
}

// messages are those of the first faults.
func (w *window) messages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faults)
}

// Created is how many pods were.
func (w *window) Created() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.latencies)
}

// APIServer is how many calls the API server refused itself, or did not take.
func (w *window) APIServer() int { return w.failed[apiServer] }

// InFlight is how many were in flight in a process that was killed.
func (w *window) InFlight() int { return min(w.failed[broken], w.cut) }

// Late is how many were sent to a process that was killed when it was dead: over a connection
// that was kept, or over a new one before its endpoint was removed.
func (w *window) Late() int { return w.failed[broken] - w.InFlight() }

// Ours is how many failed and nothing excuses it.
func (w *window) Ours() int { return w.failed[ours] }

// Wrong is how many pods were created and came out as they should not.
func (w *window) Wrong() int { return w.wrong }

// P50 and P99 are of how long the API server took to create a pod.
func (w *window) P50() time.Duration { return results.Median(w.latencies) }

// P99 is the other.
func (w *window) P99() time.Duration { return results.Quantile(w.latencies, 0.99) }
