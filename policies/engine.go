package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// ErrNotLoaded is returned while no policy has been loaded.
var ErrNotLoaded = errors.New("no policy is loaded yet")

// Engine holds the snapshot that decides now. Its methods may be called at any
// time from any goroutine; a decision in flight keeps the snapshot it started with.
type Engine struct {
	current atomic.Pointer[Snapshot]
	limits  Limits
	check   func(context.Context, *Snapshot) error
	counts  counts

	mu      sync.Mutex // serialises changes; no decision takes it
	policy  *policy
	catalog *catalog.Catalog
	given   bool // the catalog is somebody's, and not the empty one
}

// policy is what a snapshot is made of, beside the catalog.
type policy struct {
	compiler  *ast.Compiler
	program   *plan.Program // nil where unplanned says why
	unplanned error
	reads     *reads    // of input
	constant  []ast.Ref // rules that read none of it
	config    Config
	revision  string
}

// Option changes an engine.
type Option func(*Engine)

// WithLimits replaces [DefaultLimits].
func WithLimits(limits Limits) Option { return func(e *Engine) { e.limits = limits } }

// WithCheck adds a last condition that a policy must meet, over the catalog of the
// moment: package webhook's floor, which no policy may go below. It is not asked while
// the engine has been given no catalog, since every class is missing then.
func WithCheck(check func(context.Context, *Snapshot) error) Option {
	return func(e *Engine) { e.check = check }
}

// NewEngine returns an engine without a policy, over an empty catalog.
func NewEngine(options ...Option) *Engine {
	e := &Engine{catalog: catalog.Build(nil, nil), limits: DefaultLimits()}
	e.counts.watchdog.workers = make(workers)
	for _, option := range options {
		option(e)
	}
	return e
}

// Load puts modules and a configuration in force if, in this order, they are not too
// large, parse, compile strictly against the schemas, read no data that does not exist,
// pass their own tests, answer every self-test pod in time, and pass the engine's check.
// Whether they can be planned is for [Snapshot.Unplanned].
// Otherwise what was in force stays, and the error says what is wrong, with file and
// line where there is one. What is still running when its time is up is left behind.
func (e *Engine) Load(ctx context.Context, modules Modules, config Config) error {
	p, err := e.try(ctx, modules, config)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.swap(ctx, p, e.catalog)
}

// Try says what [Engine.Load] would say, and changes nothing.
func (e *Engine) Try(ctx context.Context, modules Modules, config Config) error {
	_, err := e.try(ctx, modules, config)
	return err
}

// Abandoned is how many evaluations run on that nobody waits for any more.
func (e *Engine) Abandoned() int { return int(e.counts.watchdog.abandoned.Load()) }

// SetCatalog makes decisions read a new catalog. Where its revision is that of the
// current one, the data that policies read is the same and is not built again.
func (e *Engine) SetCatalog(ctx context.Context, c *catalog.Catalog) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.current.Load(); s != nil && c.Revision() == e.catalog.Revision() {
		same := *s
		same.catalog = c
		e.current.Store(&same)
		e.catalog, e.given = c, true
		return nil
	}
	if err := e.swap(ctx, e.policy, c); err != nil {
		return err
	}
	e.given = true
	return nil
}

// swap is called with mu held.
func (e *Engine) swap(ctx context.Context, p *policy, c *catalog.Catalog) error {
	if p != nil {
		s, err := newSnapshot(ctx, p, c, &e.counts)
		if err != nil {
			return fmt.Errorf("prepare policy %s with catalog %s: %w", p.revision, c.Revision(), err)
		}
		e.current.Store(s)
	}
	e.policy, e.catalog = p, c
	return nil
}

// Snapshot returns what decides now, or [ErrNotLoaded].
func (e *Engine) Snapshot() (*Snapshot, error) {
	if s := e.current.Load(); s != nil {
		return s, nil
	}
	return nil, ErrNotLoaded
}

// Memory says what decisions have cost so far.
func (e *Engine) Memory() Memory {
	m := Memory{Hits: e.counts.hits.Load(), Misses: e.counts.misses.Load(), Evicted: e.counts.evicted.Load()}
	if s := e.current.Load(); s != nil {
		m.Size = s.memory.decisions.Len()
	}
	return m
}
