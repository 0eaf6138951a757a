package registration

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// look is how often an [Armer] looks at what is stored.
const look = 5 * time.Second

// Armer keeps a registration armed.
type Armer struct {
	Registration *Registration
	// Ready says whether this process may be asked now; it is called with what the API
	// server has been told.
	Ready func(hooks []Hook) error
	Log   logr.Logger

	armed  atomic.Bool
	logged string
}

// Run arms once Ready returns nil, and goes on until ctx ends. It calls settled, more than
// once, when everything is armed, by whomever. A webhook that was armed stays so, also when
// all replicas are gone: failurePolicy says what holds then.
//
// The rules of this version are applied once. After that they are put back only where
// there are none: while replicas of two versions run, the one that started last is right,
// and neither undoes the other's work.
//
// Configurations that do not exist, as after the break-glass, are settled too.
func (a *Armer) Run(ctx context.Context, settled func()) error {
	applied := false
	for {
		done, err := a.step(ctx, applied)
		applied = applied || done
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is what ctx asked for
		}
		if a.armed.Load() || apierrors.IsNotFound(err) {
			settled()
		}
		a.tell(err)
		interval := look
		if !applied {
			interval = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// step reports whether everything is armed.
func (a *Armer) step(ctx context.Context, applied bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*look)
	defer cancel()
	hooks, err := a.Registration.Hooks(ctx)
	if err != nil {
		a.armed.Store(false)
		return false, err
	}
	a.armed.Store(Armed(hooks))
	if applied && Armed(hooks) {
		return true, nil
	}
	if err := a.Ready(hooks); err != nil {
		return false, err
	}
	if err := a.Registration.Arm(ctx, hooks); err != nil {
		return false, err
	}
	a.armed.Store(true)
	return true, nil
}

// tell logs what is new.
func (a *Armer) tell(err error) {
	message := "armed: the API server asks the webhook"
	if err != nil {
		message = "not armed yet: " + err.Error()
	}
	if message == a.logged {
		return
	}
	a.logged = message
	if err != nil {
		a.Log.Info("the webhook is not armed yet", "configuration", a.Registration.name, "reason", err.Error())
		return
	}
	a.Log.Info("the webhook is armed", "configuration", a.Registration.name)
}

var armedDesc = prometheus.NewDesc("runtimeclass_router_armed",
	"1 while the API server is told to ask the webhook about pods, else 0.", nil, nil)

// Describe implements prometheus.Collector.
func (a *Armer) Describe(out chan<- *prometheus.Desc) { out <- armedDesc }

// Collect implements prometheus.Collector.
func (a *Armer) Collect(out chan<- prometheus.Metric) {
	value := 0.0
	if a.armed.Load() {
		value = 1
	}
	out <- prometheus.MustNewConstMetric(armedDesc, prometheus.GaugeValue, value)
}
