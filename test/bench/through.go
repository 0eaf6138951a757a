package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// clientCounts are how many clients create pods at once; the first one has half as many
// pods as the others.
var clientCounts = []int{1, 8, 32}

// through measures every variant through the API server.
func (h *harness) through(ctx context.Context, r *results.Results) error {
	byName := map[string]*results.Variant{}
	for _, v := range variants {
		byName[v.name] = &results.Variant{Name: v.name, Title: v.title, Samples: map[int][]results.Sample{}}
		r.Through = append(r.Through, byName[v.name])
	}
	for round := range h.Rounds {
		h.say("through the API server: round %d of %d", round+1, h.Rounds)
		for _, clients := range clientCounts {
			for _, i := range rand.Perm(len(variants)) {
				v := variants[i]
				sample, err := h.sample(ctx, v, clients)
				if err != nil {
					return fmt.Errorf("%s, %d clients: %w", v.title, clients, err)
				}
				byName[v.name].Samples[clients] = append(byName[v.name].Samples[clients], sample)
			}
		}
	}
	return nil
}

func (h *harness) sample(ctx context.Context, v *variant, clients int) (results.Sample, error) {
	n := h.Pods
	if clients > 1 {
		n *= 2
	}
	call := func(ctx context.Context) (time.Duration, error) { return h.create(ctx, v, dryRun) }
	// Connections and caches are those of a server that is at work.
	if _, err := drive(ctx, max(1, n/20), clients, call); err != nil {
		return results.Sample{}, err
	}
	before, err := h.calls(ctx, v)
	if err != nil {
		return results.Sample{}, err
	}
	m, err := startMeter(h.pid(v), h.apiServer)
	if err != nil {
		return results.Sample{}, err
	}
	l, err := drive(ctx, n, clients, call)
	if err != nil {
		return results.Sample{}, err
	}
	used, err := m.each(n)
	if err != nil {
		return results.Sample{}, err
	}
	after, err := h.calls(ctx, v)
	h.timedPods += n
	return results.Sample{
		P50:       results.Median(l.latencies),
		P99:       results.Quantile(l.latencies, 0.99),
		Rate:      l.rate(),
		Webhook:   used[0],
		APIServer: used[1],
		Calls:     float64(after-before) / float64(n),
	}, err
}
