package decisionlog

import (
	"context"
	"io"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Config is what a [Log] needs.
type Config struct {
	Options
	// Out takes the lines.
	Out io.Writer
	// Recorder writes Events. It is not asked for any unless the options say so.
	Recorder Recorder
	// Instance and Version are labels of what is uploaded: a name that no other process has,
	// and the product's version.
	Instance, Version string
	// Log takes what goes wrong with the log.
	Log logr.Logger
}

// Log tells what was decided. It is a [webhook.Observer], and a prometheus.Collector of how
// much could not be told.
type Log struct {
	metrics
	sinks  []sampled
	events *denials // nil if nobody is told by Events
}

var _ webhook.Observer = (*Log)(nil)

// sink takes entries from a queue of its own.
type sink interface {
	// offer returns at once, and false where the queue is full. The entry is not changed any
	// more, by anybody.
	offer(*Entry) bool
	// run works the queue off until ctx ends, and then what is left in it.
	run(ctx context.Context)
}

type sampled struct {
	sink
	Sample
	count counts
}

// New returns a log. It writes and uploads while [Log.Run] runs.
func New(c Config) (*Log, error) {
	l := &Log{metrics: newMetrics()}
	log := c.Log.WithName("decisionlog")
	written := l.counts("stdout")
	l.sinks = append(l.sinks, sampled{newLines(c.Out, log, written), c.Sample, written})
	if c.Upload.URL != "" {
		uploaded := l.counts("upload")
		l.sinks = append(l.sinks, sampled{newUpload(&c, log, uploaded, l.failures), c.Upload.Sample, uploaded})
	}
	if c.Events {
		var err error
		if l.events, err = newDenials(c.Recorder, l.counts("events")); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Decided implements [webhook.Observer].
func (l *Log) Decided(_ context.Context, d *webhook.Decision) {
	var entry *Entry
	for i := range l.sinks {
		s := &l.sinks[i]
		if !s.takes(d) {
			continue
		}
		if entry == nil {
			entry = newEntry(d)
		}
		if !s.offer(entry) {
			s.count.dropped.Inc()
		}
	}
	if l.events != nil {
		l.events.decided(d)
	}
}

// Run writes and uploads until ctx ends, which it must not before the last decision is made.
// What is queued then is still written, and uploaded as far as the time of a flush allows.
func (l *Log) Run(ctx context.Context) error {
	var group errgroup.Group
	for i := range l.sinks {
		group.Go(func() error { l.sinks[i].run(ctx); return nil })
	}
	return group.Wait()
}
