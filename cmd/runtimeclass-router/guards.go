package main

import (
	"context"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// runGuards keeps the parameters of the in-process guards in step. It waits for a
// policy and the cluster's catalog: the empty one that the engine starts with would tell
// the guards that nothing isolates. It waits for the webhook to be asked, too: before that
// nothing of ours may refuse a pod.
func (r *router) runGuards(ctx context.Context) error {
	if r.guards == nil {
		return nil
	}
	if !r.routes(ctx) {
		return nil
	}
	return r.guards.Run(ctx)
}

// routes waits until pods are routed, and reports whether that came before the end of ctx.
func (r *router) routes(ctx context.Context) bool {
	for _, known := range []<-chan struct{}{r.catalogApplied, r.loader.loaded, r.armed} {
		select {
		case <-ctx.Done():
			return false
		case <-known:
		}
	}
	return true
}

// tellGuards tells that the catalog or the policy's configuration is another.
func (r *router) tellGuards() {
	if r.guards != nil {
		r.guards.Changed()
	}
}

// inForce is what decides now, as the guards' parameters are made of it.
func (r *router) inForce() (*policies.Config, *catalog.Catalog, error) {
	snapshot, err := r.engine.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	return snapshot.Config(), snapshot.Catalog(), nil
}
