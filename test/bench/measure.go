package main

import (
	"context"
	"errors"
	"os"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// measure goes through the stages. When it returns, nothing is left running. With an error
// it returns what was measured before, if that began.
func measure(ctx context.Context, o *options) (_ *results.Results, err error) {
	m, err := results.ThisMachine()
	if err != nil {
		return nil, err
	}
	r := &results.Results{Machine: m, Settings: o.Settings}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := o.buildBaselines(ctx, dir); err != nil {
		return nil, err
	}
	untrusted, err := compare(ctx, o, r)
	if err != nil {
		return r, err
	}
	if o.stages["growth"] && !o.Quick {
		if err := growth(ctx, o, r, untrusted); err != nil {
			return r, err
		}
	}
	if o.stages["profile"] {
		if err := profiles(ctx, o, r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// compare runs the stages in which the product is compared with others, on one control
// plane. It returns the recorded review, which growth needs.
func compare(ctx context.Context, o *options, r *results.Results) (untrusted *review, err error) {
	h, err := newHarness(ctx, o, exemptNamespaces())
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, h.stop())
		r.Pods, r.Reviews = h.timedPods, h.reviews
	}()
	if untrusted, err = h.record(ctx, false); err != nil {
		return nil, err
	}
	r.PodBytes, r.ReviewBytes = len(h.pod), len(untrusted.raw)
	trusted, err := h.record(ctx, true)
	if err != nil {
		return nil, err
	}
	if err := h.replaceRouter(ctx); err != nil {
		return nil, err
	}
	if err := h.prepare(ctx); err != nil {
		return nil, err
	}
	for _, stage := range []struct {
		name string
		run  func() error
	}{
		{"through", func() error { return h.through(ctx, r) }},
		{"straight", func() error { return h.straight(ctx, r, untrusted, trusted) }},
		{"burst", func() error { return h.burst(ctx, r) }},
		{"replicas", func() error { return h.replicas(ctx, r) }},
		{"growth", func() error { return h.growth(ctx, r, untrusted) }},
	} {
		// A quick run has no time for a control plane of growth's own.
		if o.stages[stage.name] && (stage.name != "growth" || o.Quick) {
			if err := stage.run(); err != nil {
				return nil, err
			}
		}
	}
	return untrusted, nil
}
