package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// newScanner makes what looks at running pods, if the configuration asks for it.
func (r *router) newScanner(kube *rest.Config) error {
	options := r.config.Audit
	if options.Interval.Duration == 0 {
		return nil
	}
	counted, err := audit.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	auditor := &audit.Auditor{
		Side:      &survey.Side{Source: &policies.Source{}, Router: &webhook.Router{Engine: r.engine}},
		Namespace: r.informers.Namespace,
		Exempt:    options.ExemptNamespaces,
		Deadline:  r.config.Webhook.Deadline.Duration,
		Now:       time.Now,
	}
	if r.scanner, err = audit.NewScanner(options, auditor, kube, r.manager.GetEventRecorder(reporter), counted, r.log); err != nil {
		return fmt.Errorf("look at running pods: %w", err)
	}
	return nil
}

// runScanner waits until pods are routed: before that all would be found wanting, and what
// is evicted would come back as it was.
func (r *router) runScanner(ctx context.Context) error {
	if r.scanner == nil || !r.routes(ctx) {
		return nil
	}
	if err := r.scanner.Run(ctx); err != nil {
		r.log.Error(err, "running pods are not looked at") // which keeps nobody from being admitted
	}
	return nil
}
