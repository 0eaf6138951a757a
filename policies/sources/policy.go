package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// ErrWaiting is returned by [Set.Policy] while a source has not delivered.
var ErrWaiting = errors.New("waiting for policy sources")

// Policy is what the sources of a set hold together.
type Policy struct {
	Modules policies.Modules

	owner map[string]ID
	keep  []keeping
}

// keeping is what is left to do for a delivery once it is in force.
type keeping struct {
	state  *state
	digest string
	keep   func() error
}

// Policy joins the files of all sources, without the shipped ones if others replace
// them. A file that two sources have is an error: one would hide the other.
func (s *Set) Policy(replace bool) (*Policy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Policy{Modules: policies.Modules{}, owner: map[string]ID{}}
	var waiting []string
	var errs []error
	for _, state := range s.sources {
		id := state.source.ID()
		if replace && id.Kind == KindEmbedded {
			continue
		}
		if !state.delivered {
			waiting = append(waiting, id.String())
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(state.last.Modules)) {
			if other, twice := p.owner[name]; twice {
				errs = append(errs, &policies.LocatedError{
					File: name, Line: 1, Hint: "rename one",
					Err: fmt.Errorf("the file is in two sources: %s, and %s", other, id),
				})
				continue
			}
			p.owner[name], p.Modules[name] = id, state.last.Modules[name]
		}
		if state.last.Keep != nil {
			p.keep = append(p.keep, keeping{state, state.digest, state.last.Keep})
		}
	}
	if waiting != nil {
		return nil, fmt.Errorf("%w: %s", ErrWaiting, strings.Join(waiting, ", "))
	}
	return p, errors.Join(errs...)
}

// Owner returns the source that a file is of, if there is one.
func (p *Policy) Owner(file string) (ID, bool) {
	id, ok := p.owner[file]
	return id, ok
}

// Keep keeps, for the next process, what came from sources that may be out of reach
// then. Call it when the policy is in force.
func (s *Set) Keep(p *Policy) error {
	var errs []error
	for _, k := range p.keep {
		if err := k.keep(); err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		if k.state.digest == k.digest { // what came meanwhile is still to be kept
			k.state.last.Keep = nil
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}
