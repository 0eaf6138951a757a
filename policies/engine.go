package policies

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// ErrNotLoaded is returned while no policy has been loaded.
var ErrNotLoaded = errors.New("no policy is loaded yet")

// Engine holds the snapshot that decides now. Its methods may be called at any
// time from any goroutine; a decision in flight keeps the snapshot it started with.
type Engine struct {
	current atomic.Pointer[Snapshot]

	mu      sync.Mutex // serialises changes; no decision takes it
	policy  *policy
	catalog *catalog.Catalog
}

// policy is what a snapshot is made of, beside the catalog.
type policy struct {
	compiler *ast.Compiler
	config   Config
	revision string
}

// NewEngine returns an engine without a policy, over an empty catalog.
func NewEngine() *Engine { return &Engine{catalog: catalog.Build(nil, nil)} }

// Load puts modules and a configuration in force if, in this order, they parse,
// compile strictly against the schemas, read no data that does not exist, pass
// their own tests, and answer every self-test pod. Otherwise what was in force
// stays, and the error says what is wrong, with file and line where there is one.
func (e *Engine) Load(ctx context.Context, modules Modules, config Config) error {
	p, err := newPolicy(ctx, modules, config)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.swap(ctx, p, e.catalog)
}

// SetCatalog makes decisions read a new catalog. Where its revision is that of the
// current one, the data that policies read is the same and is not built again.
func (e *Engine) SetCatalog(ctx context.Context, c *catalog.Catalog) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.current.Load(); s != nil && c.Revision() == e.catalog.Revision() {
		e.current.Store(&Snapshot{policy: s.policy, catalog: c, query: s.query})
		e.catalog = c
		return nil
	}
	return e.swap(ctx, e.policy, c)
}

// swap is called with mu held.
func (e *Engine) swap(ctx context.Context, p *policy, c *catalog.Catalog) error {
	if p != nil {
		s, err := newSnapshot(ctx, p, c)
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
