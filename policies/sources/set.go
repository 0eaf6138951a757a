package sources

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// Set keeps the last delivery of each source. Its methods may be called at any time from
// any goroutine.
type Set struct {
	changed chan struct{} // of size 1: a second signal says nothing new
	now     func() time.Time

	mu      sync.Mutex
	sources []*state
}

// state is one source with its last delivery.
type state struct {
	source    Source
	delivered bool
	last      Delivery // Modules are the last that were there, Err is the newest
	digest    string
	readAt    time.Time
}

// NewSet returns the sources as a set. Nothing is read before [Set.Run].
func NewSet(all []Source) *Set {
	s := &Set{changed: make(chan struct{}, 1), now: time.Now}
	for _, source := range all {
		s.sources = append(s.sources, &state{source: source})
	}
	return s
}

// Run runs all sources until ctx ends or one of them cannot go on.
func (s *Set) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, state := range s.sources {
		group.Go(func() error {
			return state.source.Run(ctx, func(d Delivery) { s.deliver(state, d) })
		})
	}
	return group.Wait()
}

// Changed receives a value when [Set.Policy] or [Set.Status] may answer something else.
func (s *Set) Changed() <-chan struct{} { return s.changed }

func (s *Set) deliver(to *state, d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := to.digest + text(to.last.Err)
	if d.Err == nil || d.Persisted {
		to.readAt = s.now()
	}
	if d.Objects == nil {
		d.Objects = to.last.Objects
	}
	if d.Modules != nil {
		to.delivered, to.digest = true, digest(d.Modules)
	} else {
		d.Modules, d.Revision, d.ETag, d.Persisted, d.Keep = to.last.Modules, to.last.Revision, to.last.ETag, to.last.Persisted, to.last.Keep
	}
	to.last = d
	if to.digest+text(d.Err) == before {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Objects returns the objects of the cluster that hold files, by the first element of a
// file's name.
func (s *Set) Objects() map[string]corev1.ObjectReference {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]corev1.ObjectReference{}
	for _, state := range s.sources {
		maps.Copy(all, state.last.Objects)
	}
	return all
}
