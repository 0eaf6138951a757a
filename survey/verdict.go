package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Side is a policy that pods are held against.
type Side struct {
	Source *policies.Source // where the policy's files are
	Router *webhook.Router
}

// Verdict is what happens to a pod.
type Verdict struct {
	Said    string // in the words of the tables
	Denied  bool   // nobody gets in: denied, or met with a policy error, where it is enforced
	Reasons []string
	Route   webhook.Route // no more than its mode at a policy error
}

// Verdict routes a pod. A policy error is a verdict, with the places in the policy's files as
// reasons. The error is a pod that cannot be read.
func (s *Side) Verdict(ctx context.Context, in *policies.Input) (*Verdict, error) {
	route, err := s.Router.Route(ctx, *in)
	v, fault := VerdictOf(route, err)
	if fault != nil || err == nil {
		return v, fault
	}
	snapshot, snapshotErr := s.Router.Engine.Snapshot()
	if snapshotErr != nil {
		return nil, snapshotErr
	}
	own := func(module string) bool { _, own := s.Source.Modules[module]; return own }
	for _, p := range s.Source.Problems(webhook.Blame(ctx, snapshot, own, *in, err)) {
		v.Reasons = append(v.Reasons, p.String())
	}
	return v, nil
}

// VerdictOf is what a route, or the error in its place, does to a pod. A policy error is a
// verdict: where the namespace is enforced it refuses the pod. Any other error is returned.
func VerdictOf(route webhook.Route, err error) (*Verdict, error) {
	var fault *policies.Fault
	switch {
	case err == nil:
		return &Verdict{Said: route.Outcome(), Denied: route.Denied(), Reasons: route.Reasons, Route: route}, nil
	case !errors.As(err, &fault):
		return nil, err
	case route.Mode == policies.Enforce:
		return &Verdict{Said: "POLICY ERROR", Denied: true, Route: route}, nil
	}
	return &Verdict{Said: fmt.Sprintf("unchanged (%s), else POLICY ERROR", route.Mode), Route: route}, nil
}

// News is the first reason that the old verdict did not give.
func (v *Verdict) News(old *Verdict) string {
	for _, reason := range v.Reasons {
		if !slices.Contains(old.Reasons, reason) {
			return reason
		}
	}
	return strings.Join(v.Reasons, "; ")
}
