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

// Verdict routes a pod. A policy error is one: where the namespace is enforced it refuses
// the pod. The error is a pod that cannot be read.
func (s *Side) Verdict(ctx context.Context, in *policies.Input) (*Verdict, error) {
	route, err := s.Router.Route(ctx, *in)
	var fault *policies.Fault
	if errors.As(err, &fault) {
		return s.fault(ctx, in, route, err)
	}
	if err != nil {
		return nil, err
	}
	return &Verdict{Said: route.Outcome(), Denied: route.Denied(), Reasons: route.Reasons, Route: route}, nil
}

func (s *Side) fault(ctx context.Context, in *policies.Input, route webhook.Route, err error) (*Verdict, error) {
	snapshot, snapshotErr := s.Router.Engine.Snapshot()
	if snapshotErr != nil {
		return nil, snapshotErr
	}
	v := &Verdict{Said: "POLICY ERROR", Denied: route.Mode == policies.Enforce, Route: route}
	if !v.Denied {
		v.Said = fmt.Sprintf("unchanged (%s), else POLICY ERROR", route.Mode)
	}
	own := func(module string) bool { _, own := s.Source.Modules[module]; return own }
	for _, p := range s.Source.Problems(webhook.Blame(ctx, snapshot, own, *in, err)) {
		v.Reasons = append(v.Reasons, p.String())
	}
	return v, nil
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
