package shadow

import (
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// Status tells of the second policy, for /statusz.
type Status struct {
	// Revision is empty until one is loaded, as are the two after it.
	Revision string     `json:"revision"`
	LoadedAt *time.Time `json:"loadedAt"`
	Files    int        `json:"files"`
	// Errors keep what the sources hold from being loaded.
	Errors  []string         `json:"errors,omitempty"`
	Sources []sources.Status `json:"sources"`
	// Compared counts the decisions since then, Changes what of them would be otherwise, and
	// Beyond those of changes that are too many to be told apart.
	Compared int64            `json:"compared"`
	Changes  []survey.Counted `json:"changes"`
	Beyond   int              `json:"beyond,omitempty"`
}

// Status returns how the second policy fares now.
func (s *Shadow) Status() Status {
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	status.Sources, status.Changes = s.set.Status(), []survey.Counted{}
	if now := s.current.Load(); now != nil {
		status.Compared, status.Changes, status.Beyond = now.compared.Load(), now.changes.List(), now.changes.Beyond()
	}
	return status
}
