package decisionlog

import (
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// takes reports whether a decision is of the sample.
func (s *Sample) takes(d *webhook.Decision) bool {
	switch {
	case d.Err != nil:
		return true
	case d.Route.Action == policies.Deny:
		return d.Sampled(s.Denied)
	}
	return d.Sampled(s.Allowed)
}
