package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// variant is a way to do the job. Its name is that of its namespace, too, after "bench-".
type variant struct {
	name, title string
	// trust is the namespace's label. Pods of an untrusted one are routed, by those that do
	// the job; a trusted pod keeps its route.
	trust string
	// routed says that pods come out with a route.
	routed bool
	// fresh makes every pod one that was not decided on before. Pods of other variants are
	// alike, as replicas are.
	fresh bool
	// chart leaves the namespace to the chart's own configuration.
	chart bool
	// baseline is the kind of process that is called, if one is; router says that the
	// product is.
	baseline string
	router   bool
	// validated says that the product is called again, for the final pod.
	validated bool
}

func (v *variant) namespace() string { return "bench-" + v.name }

// variants in the order of the page's table.
var variants = []*variant{
	{name: "none", title: "none (nothing mutates)", trust: "untrusted"},
	{name: "noop", title: "no-op webhook, net/http", trust: "untrusted", baseline: "noop"},
	{name: "noop-controllerruntime", title: "no-op webhook, controller-runtime", trust: "untrusted", baseline: "noop-controllerruntime"},
	{name: "map-jsonpatch", title: "MutatingAdmissionPolicy, one JSONPatch (CEL in process)", trust: "untrusted", routed: true},
	{name: "job", title: "hard-coded job, net/http, direct operations", trust: "untrusted", routed: true, baseline: "job"},
	{name: "map-apply", title: "MutatingAdmissionPolicy, ApplyConfiguration + JSONPatch", trust: "untrusted", routed: true},
	{name: "job-controllerruntime", title: "hard-coded job, controller-runtime, typed pod, diffed patch", trust: "untrusted", routed: true, baseline: "job-controllerruntime"},
	{name: "router", title: "router, mutation alone", trust: "untrusted", routed: true, router: true},
	{name: "router-new", title: "router, mutation alone, every decision new", trust: "untrusted", routed: true, router: true, fresh: true},
	{name: "router-validated", title: "router, mutation and validation", trust: "untrusted", routed: true, router: true, validated: true},
	{name: "router-all", title: "router, all of it: mutation, validation, guards", trust: "untrusted", routed: true, router: true, validated: true, chart: true},
	{name: "router-trusted", title: "router, mutation alone, a trusted pod that keeps its route", trust: "trusted", router: true},
	{name: "router-trusted-all", title: "router, all of it, a trusted pod that keeps its route", trust: "trusted", router: true, validated: true, chart: true},
}

// variantOf returns the variant of that name, which exists.
func variantOf(name string) *variant {
	for _, v := range variants {
		if v.name == name {
			return v
		}
	}
	return nil
}

// exemptNamespaces are those that the chart leaves alone.
func exemptNamespaces() []string {
	exempt := []string{recordNamespace(true), recordNamespace(false)}
	for _, v := range variants {
		if !v.chart {
			exempt = append(exempt, v.namespace())
		}
	}
	return exempt
}

// prepare makes every variant's namespace and configuration, and returns when each is
// live.
func (h *harness) prepare(ctx context.Context) error {
	h.say("preparing %d variants", len(variants))
	for _, v := range variants {
		if err := h.createNamespace(ctx, v.namespace(), v.trust); err != nil {
			return err
		}
		if v.baseline != "" {
			b, err := h.startBaseline(v.baseline)
			if err != nil {
				return err
			}
			h.baselines[v.baseline] = b
			if err := b.ready(ctx, h.direct); err != nil {
				return err
			}
			if err := h.mutateBy(ctx, v.namespace(), b.port); err != nil {
				return err
			}
		}
		if v.router && !v.chart {
			if err := h.mutateByRouter(ctx, v.namespace()); err != nil {
				return err
			}
			if v.validated {
				if err := h.validateByRouter(ctx, v.namespace()); err != nil {
					return err
				}
			}
		}
	}
	if err := h.applyPolicies(ctx); err != nil {
		return err
	}
	for _, v := range variants {
		if err := h.waitLive(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// pid is the process that a variant calls, or zero.
func (h *harness) pid(v *variant) int {
	switch {
	case v.router:
		return h.router.PID()
	case v.baseline != "":
		return h.baselines[v.baseline].pid
	default:
		return 0
	}
}

// calls is how many requests a variant's process has been sent.
func (h *harness) calls(ctx context.Context, v *variant) (int, error) {
	switch {
	case v.router:
		c, err := h.router.counts(ctx)
		return c.decisions + c.validations, err
	case v.baseline != "":
		return h.baselines[v.baseline].count(ctx, h.direct)
	default:
		return 0, nil
	}
}

// waitLive creates pods until they come out as they should, and their webhook, if there
// is one, is called: the API server takes a moment to notice a new configuration.
func (h *harness) waitLive(ctx context.Context, v *variant) error {
	want := 0
	if h.pid(v) != 0 {
		want++
	}
	if v.validated {
		want++
	}
	last := errors.New("no pod was created yet")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		before, err := h.calls(ctx, v)
		if err != nil {
			return false, err
		}
		_, last = h.create(ctx, v, dryRun)
		after, err := h.calls(ctx, v)
		if last == nil && after-before < want {
			last = fmt.Errorf("the webhook was called %d times for a pod", after-before)
		}
		return last == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until %q is live: %w (last: %w)", v.title, err, last)
	}
	return nil
}
