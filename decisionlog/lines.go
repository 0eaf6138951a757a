package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/go-logr/logr"
)

// maxQueued is how many entries wait for their sink. One takes a kilobyte or two.
const maxQueued = 4096

// maxTogether is how many lines are written at once.
const maxTogether = 256

// lines writes entries as lines of JSON.
type lines struct {
	queue  chan *Entry
	out    io.Writer
	log    logr.Logger
	count  counts
	failed bool // the last time
}

func newLines(out io.Writer, log logr.Logger, count counts) *lines {
	return &lines{queue: make(chan *Entry, maxQueued), out: out, log: log, count: count}
}

func (l *lines) offer(e *Entry) bool { return offer(l.queue, e) }

func offer(queue chan<- *Entry, e *Entry) bool {
	select {
	case queue <- e:
		return true
	default:
		return false
	}
}

func (l *lines) run(ctx context.Context) {
	for {
		select {
		case e := <-l.queue:
			l.write(e)
		case <-ctx.Done():
			for len(l.queue) > 0 {
				l.write(<-l.queue)
			}
			return
		}
	}
}

// write writes an entry, and those that wait behind it, in one go.
func (l *lines) write(e *Entry) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err, n := encoder.Encode(e), 1
	for ; err == nil && n < maxTogether && len(l.queue) > 0; n++ {
		err = encoder.Encode(<-l.queue)
	}
	if err == nil {
		_, err = l.out.Write(buffer.Bytes())
	}
	if err == nil {
		l.count.written.Add(float64(n))
		l.failed = false
		return
	}
	l.count.dropped.Add(float64(n))
	if !l.failed { // said once, until it is over
		l.log.Error(err, "decisions cannot be written")
	}
	l.failed = true
}
