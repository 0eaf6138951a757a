package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/catalog/informers"
	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/decisionlog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/shadow"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// maxInFlight is more than a replica answers within a webhook's timeout when every
// decision is a new one.
const maxInFlight = 2000

// router is the running product.
type router struct {
	config       *config
	log          logr.Logger
	engine       *policies.Engine
	informers    *informers.Informers
	manager      ctrl.Manager
	certificates *certs.Certificates
	armer        *registration.Armer // nil where no webhook configuration is named
	metrics      *webhook.Metrics
	endpoints    map[string]*webhook.Endpoint
	server       *webhook.Server
	loader       *loader
	guards       *backstop.Writer // nil where no ServiceAccount is configured
	decisions    *decisionlog.Log
	scanner      *audit.Scanner // nil where running pods are not looked at

	catalogApplied chan struct{} // closed when the engine has the cluster's catalog
	armed          chan struct{} // closed when the API server asks the webhook, or nobody says that it should
	catalog        atomic.Pointer[catalog.Catalog]
	state          atomic.Int32
	foundReady     atomic.Pointer[time.Time] // when a probe first found it serving
}

// The states of a router, for /readyz.
const (
	starting int32 = iota
	serving
	draining
)

// serve runs the product until ctx ends. Decisions are logged to out.
func serve(ctx context.Context, load func() (*config, error), kube *rest.Config, log logr.Logger, out io.Writer) error {
	r, err := newRouter(load, kube, log, out)
	if err != nil {
		return err
	}
	return r.run(ctx)
}

func newRouter(load func() (*config, error), kube *rest.Config, log logr.Logger, out io.Writer) (*router, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	r := &router{config: c, log: log, engine: policies.NewEngine(policies.WithCheck(webhook.CheckPolicy)), catalogApplied: make(chan struct{}), armed: make(chan struct{})}
	r.catalog.Store(catalog.Build(nil, nil))
	if r.metrics, err = webhook.NewMetrics(metrics.Registry); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if r.loader, err = r.newLoader(kube, load); err != nil {
		return nil, err
	}
	if r.informers, err = informers.New(kube, log); err != nil {
		return nil, err
	}
	if err := errors.Join(metrics.Registry.Register(webhook.NewAbandonedCollector(r.engine.Abandoned)),
		metrics.Registry.Register(webhook.NewWatchCollector(r.informers.WatchAges)),
		metrics.Registry.Register(webhook.NewFaultCollector(r.loader.faults))); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := metrics.Registry.Register(webhook.NewMemoryCollector(r.engine.Memory)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if r.manager, err = ctrl.NewManager(kube, ctrl.Options{
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: c.Metrics.BindAddress, ExtraHandlers: map[string]http.Handler{statuszPath: r.loader}},
		HealthProbeBindAddress: c.Health.BindAddress,
	}); err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	r.loader.refused = tellObjects(r.manager.GetEventRecorder(reporter))
	if err := r.newDecisionLog(out); err != nil {
		return nil, err
	}
	if err := r.newCertificates(kube); err != nil {
		return nil, err
	}
	if c.Guards.ServiceAccount != "" {
		if r.guards, err = backstop.NewWriter(kube, c.Guards, r.inForce, log); err != nil {
			return nil, fmt.Errorf("parameters of the guards: %w", err)
		}
	}
	if err := r.newScanner(kube); err != nil {
		return nil, err
	}
	options := webhook.Options{
		Router:     &webhook.Router{Engine: r.engine},
		Namespaces: r.informers,
		Deadline:   c.Webhook.Deadline.Duration,
		Metrics:    r.metrics,
		Log:        log,
		Now:        time.Now,
		Observers:  []webhook.Observer{r.decisions},
	}
	if s := r.loader.shadow; s != nil {
		if err := metrics.Registry.Register(s); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		options.Observers = append(options.Observers, s)
	}
	r.endpoints = map[string]*webhook.Endpoint{}
	for path, handler := range map[string]admission.Handler{
		webhook.MutatePodPath:        webhook.NewHandler(options),
		webhook.ValidatePodPath:      webhook.NewPodValidator(options),
		webhook.ValidateWorkloadPath: webhook.NewWorkloadAdvisor(options),
		webhook.ValidatePolicyPath: webhook.NewPolicyValidator(webhook.PolicyOptions{
			Engine: r.engine, Files: r.loader.candidates, Metrics: r.metrics, Log: log,
		}),
	} {
		r.endpoints[path] = &webhook.Endpoint{Handler: handler, Log: log, Metrics: r.metrics, MaxInFlight: maxInFlight}
	}
	r.server = webhook.NewServer(webhook.ServerOptions{Host: c.Webhook.Host, Port: c.Webhook.Port, GetCertificate: r.certificates.GetCertificate, Log: log}, r.endpoints)
	return r, errors.Join(
		r.manager.AddHealthzCheck("ping", healthz.Ping),
		r.manager.AddReadyzCheck("certificates", r.certificates.Check),
		r.manager.AddReadyzCheck("watches", func(*http.Request) error { return r.informers.Check() }),
		r.manager.AddReadyzCheck("serving", r.checkServing),
	)
}

// reporter is what Events call the product.
const reporter = "runtimeclass-router"

func (r *router) newLoader(kube *rest.Config, read func() (*config, error)) (*loader, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &loader{
		read:    read,
		set:     sources.NewSet(sources.New(r.config.Policies.Options, catalog.PolicyLabelValue, client, r.log)),
		shadow:  r.newShadow(client),
		engine:  r.engine,
		catalog: r.catalog.Load,
		metrics: r.metrics,
		log:     r.log,
		inForce: r.tellGuards,
		loaded:  make(chan struct{}),
		running: r.config,
		config:  r.config,
		told:    map[string]string{},
	}, nil
}

// newShadow returns nil where no second policy is configured.
func (r *router) newShadow(client kubernetes.Interface) *shadow.Shadow {
	if !r.config.Shadow.Enabled() {
		return nil
	}
	return shadow.New(shadow.Config{
		Options: r.config.Shadow,
		Sources: sources.New(r.config.Shadow.Options, catalog.ShadowLabelValue, client, r.log),
		Log:     r.log,
	})
}

// load loads policies from when the cluster is known: they are tried over its classes.
func (r *router) load(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.catalogApplied:
	}
	return r.loader.run(ctx)
}

// run ends in this order when ctx does: it says that it is not ready, goes on
// answering while the Service's endpoints change, ends the server when what it has
// accepted is answered, and only then what the server reads from.
func (r *router) run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, background := errgroup.WithContext(background)
	group.Go(func() error { return r.manager.Start(background) })
	group.Go(func() error { return r.informers.Run(background, r.applyCatalog) })
	group.Go(func() error { return r.certificates.Run(background) })
	group.Go(func() error { return r.decisions.Run(background) })
	group.Go(func() error { return r.runArmer(background) })
	group.Go(func() error { return r.runGuards(background) })
	group.Go(func() error { return r.runScanner(background) })
	group.Go(func() error { return r.loader.set.Run(background) })
	group.Go(func() error { return r.load(background) })
	if r.loader.shadow != nil {
		group.Go(func() error { return r.loader.shadow.Run(background) })
	}
	group.Go(func() error {
		defer stop()
		return r.runServer(ctx, background)
	})
	return group.Wait()
}

// runServer serves from the moment that there is something to decide with, until
// background ends or, after ctx, the drain is over.
func (r *router) runServer(ctx, background context.Context) error {
	starting, cancel := context.WithCancel(background)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for _, known := range []<-chan struct{}{r.certificates.Ready(), r.catalogApplied, r.loader.loaded} {
		select {
		case <-known:
		case <-starting.Done():
			return nil
		}
	}
	serverContext, endServer := context.WithCancel(background)
	defer endServer()
	defer context.AfterFunc(ctx, func() {
		r.state.Store(draining)
		for _, endpoint := range r.endpoints {
			endpoint.Drain()
		}
		r.log.Info("draining", "for", r.config.Webhook.Drain.Duration.String())
		time.AfterFunc(r.config.Webhook.Drain.Duration, endServer)
	})()
	r.state.CompareAndSwap(0, serving)
	return r.server.Start(serverContext)
}

func (r *router) applyCatalog(ctx context.Context, c *catalog.Catalog) error {
	if err := r.engine.SetCatalog(ctx, c); err != nil {
		return err
	}
	r.catalog.Store(c)
	r.tellGuards()
	if r.loader.shadow != nil {
		r.loader.shadow.SetCatalog(c)
	}
	for _, class := range c.RuntimeClasses {
		for _, note := range class.Notes {
			r.log.Info("runtime class is odd", "runtimeClass", class.Name, "note", note)
		}
	}
	select {
	case <-r.catalogApplied:
	default:
		close(r.catalogApplied)
	}
	r.log.Info("catalog applied", "catalogRevision", c.Revision(), "runtimeClasses", len(c.RuntimeClasses))
	return nil
}

func (r *router) checkServing(request *http.Request) error {
	switch r.state.Load() {
	case starting:
		return errors.New("waiting for the catalog, the policy and the certificates; " + statuszPath + " beside the metrics says more")
	case draining:
		return errors.New("draining")
	}
	if err := r.server.Check(request); err != nil {
		return err
	}
	if err := r.certificates.CheckServed(request.Context(), r.ownAddress()); err != nil {
		return err
	}
	r.foundReady.CompareAndSwap(nil, new(time.Now()))
	return nil
}
