package webhook

import (
	"cmp"
	"fmt"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Denied reports whether the pod is refused: denied, where its namespace is enforced.
func (route *Route) Denied() bool {
	return route.Action == policies.Deny && route.Mode == policies.Enforce
}

// Outcome is a route in two words, and in a namespace that is not enforced says so.
func (route *Route) Outcome() string {
	class := cmp.Or(route.RuntimeClassName, "node's default")
	said := map[policies.Action]string{
		policies.Route:  class,
		policies.Keep:   class + " (kept)",
		policies.Exempt: class + " (exempt)",
		policies.Deny:   "DENIED",
	}[route.Action]
	if route.Mode != policies.Enforce {
		return fmt.Sprintf("unchanged (%s), else %s", route.Mode, said)
	}
	return said
}
