package decisionlog

import (
	"github.com/cespare/xxhash/v2"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// takes reports whether a decision is of the sample. It goes by the review's UID, so that all
// who are told, and all replicas, agree on the same ones, and a smaller sample is part of a
// larger one.
func (s *Sample) takes(d *webhook.Decision) bool {
	share := s.Allowed
	switch {
	case d.Err != nil:
		return true
	case d.Route.Action == policies.Deny:
		share = s.Denied
	}
	switch {
	case share <= 0:
		return false
	case share >= 1:
		return true
	}
	const bits = 53 // of a float64's precision
	return float64(xxhash.Sum64String(string(d.Request.UID))>>(64-bits)) < share*(1<<bits)
}
