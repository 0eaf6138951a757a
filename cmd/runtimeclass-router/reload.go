package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// reloadInterval is how often the configuration and the policy's files are looked at.
// They are read rather than watched: a mounted ConfigMap is swapped by links, at the
// kubelet's own pace of about a minute.
const reloadInterval = 5 * time.Second

// watchConfig puts a changed `router` or `policies` section, and changed policy files,
// in force without a restart. A faulty one is logged and counted once, and what was in
// force stays. Other sections take a restart.
func (r *router) watchConfig(ctx context.Context) error {
	seen := r.fingerprint()
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		found := r.fingerprint()
		if found == seen {
			continue
		}
		seen = found
		err := r.reload(ctx)
		r.metrics.Reloaded(err)
		if err != nil {
			r.log.Error(err, "configuration is not reloaded; the last good one stays in force")
		}
	}
}

// reload validates first and swaps then.
func (r *router) reload(ctx context.Context) error {
	c, err := r.load()
	if err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return err
	}
	modules, err := c.modules()
	if err != nil {
		return err
	}
	if err := r.engine.Load(ctx, modules, c.router); err != nil {
		return fmt.Errorf("load policy: %w", err)
	}
	snapshot, err := r.engine.Snapshot()
	if err != nil {
		return err
	}
	r.metrics.PolicyLoaded(snapshot.Revision())
	r.log.Info("configuration reloaded", "policyRevision", snapshot.Revision())
	if needsRestart(r.config, c) {
		r.log.Info("sections of the configuration other than router and policies have changed, and take a restart")
	}
	return nil
}

// needsRestart reports whether sections differ that are read only at the start.
func needsRestart(running, given *config) bool {
	return running.Webhook != given.Webhook || running.Metrics != given.Metrics || running.Health != given.Health ||
		running.Certs != given.Certs || running.Guards != given.Guards || running.Log != given.Log
}

// fingerprint is a digest of all that a reload would read, or the error of reading it.
func (r *router) fingerprint() string {
	c, err := r.load()
	if err != nil {
		return err.Error()
	}
	modules, err := c.modules()
	if err != nil {
		return err.Error()
	}
	raw, err := json.Marshal(map[string]any{"config": c, "modules": modules})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}
