package shadow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// load puts in place what the sources hold, until ctx ends. A policy that does not load leaves
// the last good one where it is.
func (s *Shadow) load(ctx context.Context) error {
	last, failed := "", false
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.catalog:
			if err := s.engine.SetCatalog(ctx, c); err != nil && ctx.Err() == nil {
				s.log.Error(err, "the catalog is not taken over")
			}
			if !failed {
				continue
			}
			last = "" // what failed may load over another catalog
		case <-s.poke:
		case <-s.set.Changed():
		}
		policy, err := s.set.Policy(s.options.Mode == "replace")
		if errors.Is(err, sources.ErrWaiting) {
			continue
		}
		s.mu.Lock()
		pairing := s.pairing
		s.mu.Unlock()
		if pairing.revision == "" {
			continue // nothing is in force to compare with
		}
		state := pairing.digest
		if err == nil {
			state += digestOf(policy.Modules)
		} else {
			state += err.Error()
		}
		if state == last {
			continue
		}
		if err == nil {
			err = s.put(ctx, policy, pairing)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is what was asked for
		}
		last, failed = state, err != nil
		if err != nil {
			s.log.Error(err, "the second policy is not loaded")
		}
		s.mu.Lock()
		s.status.Errors = sources.Lines(err)
		s.mu.Unlock()
	}
}

// put loads a policy. Where the sources hold nothing there is no second policy: the shipped
// one alone is not what anybody tries out.
func (s *Shadow) put(ctx context.Context, policy *sources.Policy, pairing pairing) error {
	own := policies.Modules{}
	for name, text := range policy.Modules {
		if id, ok := policy.Owner(name); ok && id.Kind != sources.KindEmbedded {
			own[name] = text
		}
	}
	if len(own) == 0 {
		s.current.Store(nil)
		s.loaded.Set(0)
		s.mu.Lock()
		s.status = Status{}
		s.mu.Unlock()
		return nil
	}
	if err := s.engine.Load(ctx, policy.Modules, pairing.config); err != nil {
		return err
	}
	snapshot, err := s.engine.Snapshot()
	if err != nil {
		return err
	}
	next := &loaded{
		side:   &survey.Side{Source: &policies.Source{Modules: own}, Router: &webhook.Router{Engine: s.engine}},
		digest: pairing.digest,
	}
	next.changes.Limit = maxChanges
	s.current.Store(next)
	s.loaded.Set(1)
	s.mu.Lock()
	s.status = Status{Revision: snapshot.Revision(), LoadedAt: new(time.Now()), Files: len(own)}
	s.mu.Unlock()
	s.log.Info("second policy loaded", "shadowRevision", snapshot.Revision(), "files", len(own))
	if err := s.set.Keep(policy); err != nil {
		s.log.Error(err, "the second policy is loaded, and not kept for a restart")
	}
	return nil
}

// digestOf tells whether two values would be the same as JSON.
func digestOf(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}
