package main

import (
	"context"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// large measures the router where nodes, namespaces and classes are as many as each
// curve reaches.
func (g *grower) large(ctx context.Context) (*results.Large, error) {
	nodes, namespaces, classes := slices.Max(g.nodes), slices.Max(g.namespaces), slices.Max(g.classes)
	for _, reach := range []func() error{
		func() error { return g.reachNamespaces(ctx, namespaces) },
		func() error { return g.reachNodes(ctx, nodes) },
		func() error { return g.reachClasses(ctx, classes) },
		func() error { return g.fillPods(ctx) },
	} {
		if err := reach(); err != nil {
			return nil, err
		}
	}
	l := &results.Large{Nodes: nodes, Namespaces: namespaces, RuntimeClasses: classes, Pods: g.pods}
	var err error
	if l.MayListPods, err = g.mayListPods(ctx); err != nil {
		return nil, err
	}
	m, err := g.measureRouter(ctx, nil)
	if err != nil && ctx.Err() == nil {
		l.Fault = oneLine(err)
		return l, nil
	}
	l.Start, l.Answer, l.Idle, l.Memory, l.P50, l.Reference = m.start.ready, m.start.answer, m.idle, m.memory, m.p50, m.reference
	return l, err
}

// fillPods stores pods in a namespace that the chart leaves alone.
func (g *grower) fillPods(ctx context.Context) error {
	v := &variant{name: recordNamespace(false)[len("bench-"):]}
	now := 0
	return g.fill(ctx, "pods", &now, g.pods, func(ctx context.Context, _ int) error {
		_, err := g.create(ctx, v, stored)
		return err
	})
}

// mayListPods asks the API server whether the product's account could.
func (g *grower) mayListPods(ctx context.Context) (bool, error) {
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + stack.Namespace + ":" + stack.Release,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + stack.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"},
	}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := g.Client.Create(ctx, asked)
	return asked.Status.Allowed, err
}
