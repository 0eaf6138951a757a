package policies

import "time"

// workers run evaluations on goroutines that have run some before. An evaluation nests so
// deep that the stack of a new goroutine is copied several times until it is large enough,
// which is a fifth of its time. A nil one makes a goroutine for each.
type workers chan func()

// idleTime is how long a worker waits for more.
const idleTime = time.Minute

// do runs work and returns at once. Work that never ends is not missed: where no worker
// waits, another is made.
func (w workers) do(work func()) {
	if w == nil {
		go work()
		return
	}
	select {
	case w <- work:
	default:
		go w.run(work)
	}
}

func (w workers) run(work func()) {
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	for {
		work()
		timer.Reset(idleTime)
		select {
		case work = <-w:
		case <-timer.C:
			return
		}
	}
}
