package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/shadow"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// reloadInterval is how often the configuration file is looked at. It is read rather
// than watched: a mounted ConfigMap is swapped by links, at the kubelet's own pace of
// about a minute. What sources deliver is taken at once.
const reloadInterval = 5 * time.Second

// loader puts the configuration file and what the sources hold in force, one change at a
// time and as a whole. What is faulty is told once, and what was in force stays.
type loader struct {
	read    func() (*config, error)
	set     *sources.Set
	engine  *policies.Engine
	catalog func() *catalog.Catalog
	metrics *webhook.Metrics
	shadow  *shadow.Shadow // nil where there is none
	log     logr.Logger
	// refused is told of files that are not put in force.
	refused func(refusal)
	// inForce is called after each load.
	inForce func()
	loaded  chan struct{} // closed by the first load

	// What follows is run's own.
	running, config *config // as started, and the last good one
	last            attempt
	files           policies.Modules  // in force
	told            map[string]string // faults by what they are of

	mu     sync.Mutex
	status policyStatus
}

// startRetry is how often a policy that failed is tried again while none is in force: a
// machine that was busy at the start may have made it miss the limits of time.
const startRetry = time.Minute

// attempt is what was loaded last. What failed may load over another catalog.
type attempt struct {
	state   string
	failed  bool
	catalog string // its revision
	at      time.Time
}

// stands reports whether another attempt would end as this one did.
func (a *attempt) stands(next *attempt, loaded bool) bool {
	return a.state == next.state && (!a.failed || a.catalog == next.catalog && (loaded || next.at.Sub(a.at) < startRetry))
}

// run loads until ctx ends.
func (l *loader) run(ctx context.Context) error {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		l.step(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-l.set.Changed():
		}
	}
}

// step looks at everything once, and loads what is new.
func (l *loader) step(ctx context.Context) {
	l.readConfig()
	for _, source := range l.set.Status() {
		if err := source.Err(); l.isNew(source.ID().String(), err) {
			l.metrics.Reloaded(err)
			l.log.Error(err, "a policy source cannot be read; its last good files stay in force", "source", source.ID().String())
			l.refused(l.refusal(nil, err))
		}
	}
	policy, err := l.set.Policy(l.config.Policies.replace())
	if errors.Is(err, sources.ErrWaiting) {
		l.setErrors(policy, err)
		return
	}
	next := attempt{catalog: l.catalog().Revision(), at: time.Now()}
	if err == nil {
		next.state = l.state(policy)
		if l.last.stands(&next, l.files != nil) {
			if !l.last.failed {
				l.keep(policy) // the same files in another bundle, signed anew say
			}
			return
		}
		err = l.load(ctx, policy)
	}
	if ctx.Err() != nil {
		return
	}
	next.failed = err != nil
	l.last = next
	l.setErrors(policy, err)
	if l.isNew("policy", err) {
		l.metrics.Reloaded(err)
		l.log.Error(err, "the policy is not loaded; the last good one stays in force")
		l.refused(l.refusal(policy, err))
	}
}

// readConfig takes the configuration file if it is good.
func (l *loader) readConfig() {
	c, err := l.read()
	if err == nil {
		err = c.validate()
	}
	l.mu.Lock()
	l.status.ConfigurationErrors = sources.Lines(err)
	l.mu.Unlock()
	if l.isNew("configuration", err) {
		l.metrics.Reloaded(err)
		l.log.Error(err, "configuration is not reloaded; the last good one stays in force")
	}
	if err != nil {
		return
	}
	if needsRestart(l.running, c) && !needsRestart(l.running, l.config) {
		l.log.Info("the configuration has changed in what takes a restart: all but router and policies.mode")
	}
	l.config = c
}

// load validates first and swaps then.
func (l *loader) load(ctx context.Context, policy *sources.Policy) error {
	if err := l.engine.Load(ctx, policy.Modules, l.config.router); err != nil {
		return err
	}
	snapshot, err := l.engine.Snapshot()
	if err != nil {
		return err
	}
	l.files = policy.Modules
	l.metrics.PolicyLoaded(snapshot.Revision())
	l.metrics.ExceptionsInForce(l.config.router.Exceptions)
	l.mu.Lock()
	l.status.Revision, l.status.LoadedAt, l.status.Mode, l.status.Files = snapshot.Revision(), new(time.Now()), l.config.Policies.Mode, len(policy.Modules)
	l.mu.Unlock()
	l.log.Info("policy loaded", "policyRevision", snapshot.Revision(), "files", len(policy.Modules))
	if err := snapshot.Unplanned(); err != nil {
		l.log.Info("the policy's rules are evaluated as they are, which takes a new decision longer: they cannot be planned", "reason", err.Error())
	}
	select {
	case <-l.loaded:
		l.metrics.Reloaded(nil)
	default:
		close(l.loaded)
	}
	if l.shadow != nil {
		l.shadow.Paired(*snapshot.Config(), snapshot.Revision())
	}
	l.inForce()
	l.keep(policy)
	return nil
}

// keep keeps a policy that is in force for a restart.
func (l *loader) keep(policy *sources.Policy) {
	if err := l.set.Keep(policy); l.isNew("keep", err) {
		l.log.Error(err, "the policy is in force, and not kept for a restart")
	}
}

// candidates are the files that would be loaded now.
func (l *loader) candidates() (policies.Modules, error) {
	policy, err := l.set.Policy(l.report().Policy.Mode == "replace")
	if policy == nil {
		return nil, err
	}
	return policy.Modules, err
}

// sockets are local addresses in errors of the network, which differ each time.
var sockets = regexp.MustCompile(`\S+:\d+->`)

// isNew reports whether a fault is another than the last of the same thing.
func (l *loader) isNew(of string, err error) bool {
	if err == nil {
		delete(l.told, of)
		return false
	}
	message := sockets.ReplaceAllString(err.Error(), "")
	if l.told[of] == message {
		return false
	}
	l.told[of] = message
	return true
}

// state is equal for what would load equally.
func (l *loader) state(policy *sources.Policy) string {
	raw, err := json.Marshal([]any{l.config.router, l.config.Policies.Mode, policy.Modules})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// needsRestart reports whether sections differ that are read only at the start.
func needsRestart(running, given *config) bool {
	return running.Webhook != given.Webhook || running.Metrics != given.Metrics || running.Health != given.Health ||
		running.Certs != given.Certs || running.Guards != given.Guards || running.Log != given.Log ||
		running.Policies.Options != given.Policies.Options || running.Shadow != given.Shadow ||
		!reflect.DeepEqual(running.Audit, given.Audit) || !reflect.DeepEqual(running.DecisionLog, given.DecisionLog)
}
