package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// sizes are how far each curve goes.
type sizes struct {
	nodes, namespaces, classes, exceptions, files []int
	requests                                      int // to the router and to the reference, each
	blocks                                        int // in which the two take turns
}

func (o *options) sizes() sizes {
	if o.Quick {
		return sizes{
			nodes: []int{1, 5}, namespaces: []int{40, 50}, classes: []int{5, 8}, exceptions: []int{0, 5}, files: []int{4, 6},
			requests: 10, blocks: 1,
		}
	}
	return sizes{
		nodes:      o.upTo(1, 10, 100, 1000, 5000),
		namespaces: o.upTo(10, 100, 1000, 10000),
		classes:    o.upTo(5, 20, 50, 100, 200),
		exceptions: o.upTo(0, 10, 100, 1000),
		files:      o.upTo(4, 10, 20, 40),
		requests:   100,
		blocks:     9,
	}
}

// upTo leaves out what is too large, but for the first.
func (o *options) upTo(first int, sizes ...int) []int {
	return append([]int{first}, slices.DeleteFunc(sizes, func(size int) bool { return size > o.largest })...)
}

// growth measures a new decision on a control plane of its own: what the others made of
// theirs does not count.
func growth(ctx context.Context, o *options, r *results.Results, untrusted *review) error {
	h, err := newHarness(ctx, o, []string{recordNamespace(false)})
	if err != nil {
		return err
	}
	err = h.prepareGrowth(ctx)
	if err == nil {
		err = h.growth(ctx, r, untrusted)
	}
	r.Reviews += h.reviews
	return errors.Join(err, h.stop())
}

// prepareGrowth makes what the stages before have, too.
func (h *harness) prepareGrowth(ctx context.Context) error {
	// The stack's own router would use the processors, too.
	if err := h.Router.Stop(); err != nil {
		return err
	}
	if err := h.createNamespace(ctx, recordNamespace(false), "untrusted"); err != nil {
		return err
	}
	reference, err := h.startBaseline("noop")
	if err != nil {
		return err
	}
	h.baselines["noop"] = reference
	return reference.ready(ctx, h.direct)
}

// growth measures a new decision while one thing grows. It ends with the cluster where
// everything is large.
func (h *harness) growth(ctx context.Context, r *results.Results, untrusted *review) error {
	g := &grower{harness: h, review: untrusted, sizes: h.sizes(), reference: h.baselines["noop"]}
	if err := g.countNow(ctx); err != nil {
		return err
	}
	for _, c := range []struct {
		name, title string
		sizes       []int
		reach       func(ctx context.Context, size int) error
		configure   func(size int) (func(config map[string]any), error)
	}{
		{"files", "policy files", g.files, nil, g.configureFiles},
		{"exceptions", "exceptions", g.exceptions, nil, g.configureExceptions},
		{"classes", "RuntimeClasses", g.classes, g.reachClasses, nil},
		{"nodes", "nodes", g.nodes, g.reachNodes, nil},
		{"namespaces", "namespaces", g.namespaces, g.reachNamespaces, nil},
	} {
		curve := &results.Curve{Name: c.name, Title: c.title}
		r.Growth = append(r.Growth, curve)
		for _, size := range c.sizes {
			if c.reach != nil {
				if err := c.reach(ctx, size); err != nil {
					return fmt.Errorf("%d %s: %w", size, c.title, err)
				}
			}
			var configure func(map[string]any)
			if c.configure != nil {
				var err error
				if configure, err = c.configure(size); err != nil {
					return err
				}
			}
			point, err := g.point(ctx, size, configure)
			if err != nil {
				return fmt.Errorf("%d %s: %w", size, c.title, err)
			}
			h.say("%d %s: p50 %v %s", size, c.title, point.P50, point.Fault)
			curve.Points = append(curve.Points, point)
		}
		if err := g.shrink(ctx, c.name); err != nil {
			return err
		}
	}
	var err error
	r.Large, err = g.large(ctx)
	return err
}

// grower is the harness of the growth.
type grower struct {
	*harness
	sizes
	review    *review
	reference *baseline

	nodesNow, namespacesNow, classesNow int
}

// point starts a router, and sends it and the reference requests in turn. That the
// router fails there is a result, too.
func (g *grower) point(ctx context.Context, size int, configure func(map[string]any)) (results.Point, error) {
	m, err := g.measureRouter(ctx, configure)
	if err != nil && ctx.Err() == nil {
		return results.Point{Size: size, Fault: oneLine(err)}, nil
	}
	return results.Point{Size: size, P50: m.p50, Reference: m.reference, CPU: m.cpu, Start: m.start.ready, Memory: m.memory}, err
}

// measured is what became of one router.
type measured struct {
	start          startTimes
	p50, reference time.Duration
	cpu            time.Duration
	idle, memory   int64
}

func (g *grower) measureRouter(ctx context.Context, configure func(map[string]any)) (m measured, err error) {
	if err := g.settle(ctx); err != nil {
		return m, err
	}
	r, err := g.newRouter(ctx, "growth", configure)
	if err != nil {
		return m, err
	}
	fresh := &target{next: g.review.changed, routed: true}
	if m.start, err = g.startOfRouter(ctx, r, fresh); err != nil {
		return m, err
	}
	defer func() {
		if stopped := r.Stop(); err == nil {
			err = stopped
		}
	}()
	if m.idle, err = memory(r.PID()); err != nil {
		return m, err
	}
	c := g.certificate.client(1)
	defer c.CloseIdleConnections()
	call := func(url string, next func(int64) []byte, routed bool) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			return send(ctx, c, url, next(serial.Add(1)), routed)
		}
	}
	toRouter, toReference := call(r.URL, g.review.changed, true), call(g.reference.url, g.review.copied, false)
	var p50s, references, cpus []time.Duration
	// The first block, which is not counted, warms both.
	for block := range g.blocks + 1 {
		meter, err := startMeter(r.PID())
		if err != nil {
			return m, err
		}
		asked, err := drive(ctx, g.requests, 1, toRouter)
		if err != nil {
			return m, err
		}
		used, err := meter.each(g.requests)
		if err != nil {
			return m, err
		}
		compared, err := drive(ctx, g.requests, 1, toReference)
		if err != nil {
			return m, err
		}
		g.reviews += 2 * g.requests
		if block > 0 {
			p50s, cpus = append(p50s, results.Median(asked.latencies)), append(cpus, used[0])
			references = append(references, results.Median(compared.latencies))
		}
	}
	m.p50, m.cpu, m.reference = results.Median(p50s), results.Median(cpus), results.Median(references)
	m.memory, err = memory(r.PID())
	return m, err
}

// settle waits until the API server has digested what was created: until it uses less
// than a fifth of a processor, or for a minute.
func (g *grower) settle(ctx context.Context) error {
	if g.Quick {
		return nil
	}
	for range 60 {
		before, err := cpu(g.apiServer)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
		after, err := cpu(g.apiServer)
		if err != nil {
			return err
		}
		if after-before < 200*time.Millisecond {
			return nil
		}
	}
	return nil
}

// configureFiles writes policy files, each with a hook that reads the pod and fires on none.
func (g *grower) configureFiles(size int) (func(map[string]any), error) {
	dir := filepath.Join(g.scratch, fmt.Sprintf("policies-%d", size))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for i := range size {
		source := fmt.Sprintf(`package router.custom

denials contains "images of registry %[1]d are not let in" if {
	some container in input.pod.spec.containers
	startswith(container.image, "registry-%[1]d.example.com/")
}
`, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("registry_%d.rego", i)), []byte(source), 0o600); err != nil {
			return nil, err
		}
	}
	return func(config map[string]any) {
		policies, _ := config["policies"].(map[string]any)
		if policies == nil {
			policies = map[string]any{}
			config["policies"] = policies
		}
		policies["directory"] = dir
	}, nil
}

// configureExceptions has exceptions for namespaces that do not exist.
func (g *grower) configureExceptions(size int) (func(map[string]any), error) {
	exceptions := make([]any, size)
	for i := range exceptions {
		exceptions[i] = map[string]any{
			"name": fmt.Sprintf("exception-%d", i), "namespaces": []any{fmt.Sprintf("excepted-%d", i)}, "serviceAccounts": []any{"agent"},
			"runtimeClassName": "nvidia", "owner": "platform@example.com", "ticket": fmt.Sprintf("https://tickets.example.com/%d", i),
			"reason": "reads the host's logs", "until": "2199-12-31",
		}
	}
	return func(config map[string]any) {
		router, _ := config["router"].(map[string]any)
		if router == nil {
			router = map[string]any{}
			config["router"] = router
		}
		router["exceptions"] = exceptions
	}, nil
}
