package sources

import (
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Status tells how a source fares.
type Status struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	// State is waiting until the source has delivered, persisted while what it delivered
	// was kept by an earlier process, and live after that.
	State string `json:"state"`
	Files int    `json:"files"`
	// Revision is the source's own name for the files, or their digest.
	Revision string `json:"revision,omitempty"`
	ETag     string `json:"etag,omitempty"`
	// ReadAt is when the source was last read, or found unchanged.
	ReadAt *time.Time `json:"readAt,omitempty"`
	// Errors say what is wrong with the source or its files, each on one line.
	Errors []string `json:"errors,omitempty"`

	id  ID
	err error
}

// ID returns the source's.
func (s *Status) ID() ID { return s.id }

// Err returns what the source cannot read now.
func (s *Status) Err() error { return s.err }

// Status returns how each source fares.
func (s *Set) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Status
	for _, state := range s.sources {
		id := state.source.ID()
		one := Status{
			Kind: id.Kind, Name: id.Name, State: "waiting", Files: len(state.last.Modules),
			Revision: state.last.Revision, ETag: state.last.ETag, Errors: Lines(state.last.Err), id: id, err: state.last.Err,
		}
		if one.Revision == "" {
			one.Revision = state.digest
		}
		switch {
		case state.delivered && state.last.Persisted:
			one.State = "persisted"
		case state.delivered:
			one.State = "live"
		}
		if !state.readAt.IsZero() {
			at := state.readAt
			one.ReadAt = &at
		}
		all = append(all, one)
	}
	return all
}

// Lines are the problems that an error joins, each on one line with its place.
func Lines(err error) []string {
	var lines []string
	for _, problem := range policies.Problems(err) {
		lines = append(lines, problem.String())
	}
	return lines
}
