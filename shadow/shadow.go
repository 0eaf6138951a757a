package shadow

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

const (
	// maxWaiting is how many decisions wait to be looked at, a pod each.
	maxWaiting = 256
	// maxChanges is how many changes are told apart.
	maxChanges = 1000
	// deadline is what the second policy has for one decision.
	deadline = time.Second
)

// Config is what a [Shadow] needs.
type Config struct {
	Options
	// Sources are what the options name: [sources.New] with [catalog.ShadowLabelValue].
	Sources []sources.Source
	Log     logr.Logger
}

// Shadow is the second policy. It is a [webhook.Observer], and a prometheus.Collector.
type Shadow struct {
	metrics
	options Options
	set     *sources.Set
	log     logr.Logger
	waiting chan *webhook.Decision
	limit   *rate.Limiter
	engine  *policies.Engine
	catalog chan *catalog.Catalog // of size 1: the newest counts
	poke    chan struct{}         // of size 1: Paired has something new

	current atomic.Pointer[loaded] // nil while there is no second policy

	mu      sync.Mutex
	pairing pairing
	status  Status
}

// pairing is what the policy in force is, and goes by.
type pairing struct {
	config   policies.Config
	revision string
	digest   string // of config
}

// loaded is a second policy and what has been found of it.
type loaded struct {
	side     *survey.Side
	digest   string // of the configuration that it goes by
	changes  survey.Changes
	compared atomic.Int64
}

// New returns a shadow, which has a policy while [Shadow.Run] runs.
func New(c Config) *Shadow {
	return &Shadow{
		metrics: newMetrics(),
		options: c.Options,
		set:     sources.NewSet(c.Sources),
		log:     c.Log.WithName("shadow"),
		waiting: make(chan *webhook.Decision, maxWaiting),
		limit:   rate.NewLimiter(rate.Limit(c.PerSecond), 1),
		engine:  policies.NewEngine(policies.WithCheck(webhook.CheckPolicy)),
		catalog: make(chan *catalog.Catalog, 1),
		poke:    make(chan struct{}, 1),
	}
}

// SetCatalog is told of each new catalog, by one goroutine.
func (s *Shadow) SetCatalog(c *catalog.Catalog) {
	select {
	case <-s.catalog: // an older one, which nobody has taken
	default:
	}
	s.catalog <- c
}

// Paired is told of the policy in force, whenever one is loaded: its configuration, which the
// second policy goes by as well, and its revision.
func (s *Shadow) Paired(config policies.Config, revision string) {
	s.mu.Lock()
	s.pairing = pairing{config: config, revision: revision, digest: digestOf(config)}
	s.mu.Unlock()
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Decided implements [webhook.Observer]. Only what the mutating endpoint decides is looked
// at: the final pod is judged by its class.
func (s *Shadow) Decided(_ context.Context, d *webhook.Decision) {
	if d.Path != webhook.MutatePodPath || d.Input.Pod == nil || s.current.Load() == nil {
		return
	}
	select {
	case s.waiting <- d:
	default:
		s.dropped.Inc()
	}
}

// Run reads sources, loads what they hold, and looks at decisions until ctx ends.
func (s *Shadow) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.set.Run(ctx) })
	group.Go(func() error { return s.load(ctx) })
	group.Go(func() error { return s.look(ctx) })
	return group.Wait()
}
