package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// router is a process of the product.
type router struct {
	*stack.Router
	port int
}

// newRouter prepares one with the bench's certificate, and what else configure changes.
func (h *harness) newRouter(ctx context.Context, name string, configure func(config map[string]any)) (*router, error) {
	r, err := h.NewRouter(ctx, name)
	if err != nil {
		return nil, err
	}
	err = r.Configure(func(config map[string]any) {
		config["certs"] = map[string]any{"mode": "directory", "directory": h.certificate.dir}
		if webhook, ok := config["webhook"].(map[string]any); ok {
			webhook["drain"] = "100ms" // nobody is sent elsewhere meanwhile
		}
		if configure != nil {
			configure(config)
		}
	})
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(at.Port())
	return &router{Router: r, port: port}, err
}

// counts are what a router counted so far.
type counts struct {
	decisions, validations int
	evaluated, remembered  int
	counted                bool // whether it counts evaluations
}

func (r *router) counts(ctx context.Context) (counts, error) {
	text, err := get(ctx, http.DefaultClient, r.MetricsURL)
	if err != nil {
		return counts{}, fmt.Errorf("read metrics: %w", err)
	}
	return parseCounts(text)
}

// parseCounts sums what the text format says of each of the metrics.
func parseCounts(text string) (counts, error) {
	var c counts
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		name, labels, _ := strings.Cut(strings.TrimPrefix(series, "runtimeclass_router_"), "{")
		if !ok || name == series {
			continue // of another program's metrics, or a comment
		}
		var of *int
		switch {
		case name == "decisions_total":
			of = &c.decisions
		case name == "validations_total":
			of = &c.validations
		case name == "evaluations_total" && strings.Contains(labels, `source="evaluated"`):
			of = &c.evaluated
			c.counted = true
		case name == "evaluations_total":
			of = &c.remembered
		default:
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return c, fmt.Errorf("metric %s: %w", series, err)
		}
		*of += int(n)
	}
	return c, nil
}

func (c counts) minus(before counts) counts {
	return counts{
		decisions: c.decisions - before.decisions, validations: c.validations - before.validations,
		evaluated: c.evaluated - before.evaluated, remembered: c.remembered - before.remembered, counted: c.counted,
	}
}
