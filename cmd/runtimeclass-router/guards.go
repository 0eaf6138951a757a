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
	for _, known := range []<-chan struct{}{r.catalogApplied, r.loader.loaded, r.armed} {
		select {
		case <-ctx.Done():
			return nil
		case <-known:
		}
	}
	return r.guards.Run(ctx)
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
