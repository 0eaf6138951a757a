package backstop

import (
	"fmt"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// fallback chooses for the least trusted level: what is enough there is enough for every
// level, since floors never sink towards it.
func (s *State) fallback() (class, note string) {
	if len(s.Config.Levels) == 0 {
		return "", ""
	}
	level := s.Config.Levels[len(s.Config.Levels)-1]
	if s.Fallback != "" {
		switch given := s.Catalog.RuntimeClass(s.Fallback); {
		case given == nil:
			return "", fmt.Sprintf("runtime class %q does not exist", s.Fallback)
		case !given.Isolation.AtLeast(level.Floor):
			return "", fmt.Sprintf("runtime class %q is %s, below the floor %s of level %s", s.Fallback, given.Isolation, level.Floor, level.Name)
		}
		return s.Fallback, ""
	}
	candidates := s.candidates(level)
	for _, candidate := range candidates {
		if candidate.PoolReady {
			return candidate.Name, ""
		}
	}
	if len(candidates) > 0 {
		return candidates[0].Name, ""
	}
	return "", fmt.Sprintf("no general candidate of level %s meets its floor %s", level.Name, level.Floor)
}

// candidates are the classes of a level's general list that meet its floor, in the order
// of the list and by name within a runtime.
func (s *State) candidates(level policies.Level) []*catalog.RuntimeClass {
	var found []*catalog.RuntimeClass
	for _, runtime := range level.Candidates[policies.GeneralProfile] {
		for i := range s.Catalog.RuntimeClasses {
			class := &s.Catalog.RuntimeClasses[i]
			if listed([]string{runtime}, class) && class.Isolation.AtLeast(level.Floor) {
				found = append(found, class)
			}
		}
	}
	return found
}
