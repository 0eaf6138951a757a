package certs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// poll is how often [Certificates.Wait] looks. A mounted Secret is replaced by a
// renamed link, which a poll sees on every file system and inotify not on all.
const poll = time.Second

var errNotReady = errors.New("certificates are not ready yet")

// Certificates is the serving certificate.
type Certificates struct {
	options   Options
	log       logr.Logger
	published *published // nil in mode directory
	ready     atomic.Bool
}

var _ healthz.Checker = (*Certificates)(nil).Check

// New returns the certificate that the options, which must be valid, describe. In
// mode [Self] it adds a rotator to mgr, which works while mgr runs, on every replica
// and not only on a leader; in mode [Directory] mgr is not used and may be nil.
//
// The rotator logs to controller-runtime's global logger.
func New(mgr manager.Manager, o Options, log logr.Logger) (*Certificates, error) {
	c := &Certificates{options: o, log: log}
	if o.Mode != Self {
		return c, nil
	}
	if err := addRotator(mgr, &o); err != nil {
		return nil, fmt.Errorf("add certificate rotator: %w", err)
	}
	c.published = &published{reader: mgr.GetAPIReader(), options: o}
	return c, nil
}

// Wait returns nil once the directory holds a valid pair, and in mode [Self] once it
// is the Secret's and every webhook of the configuration has a caBundle that
// verifies it. A server that starts after Wait therefore never answers with a
// certificate that the API server refuses. If ctx ends first, the error wraps its
// cause and says what was missing.
//
// In mode self the manager must run meanwhile.
func (c *Certificates) Wait(ctx context.Context) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var logged string
	for {
		err := c.check(ctx)
		if err == nil {
			c.ready.Store(true)
			c.log.Info("certificates are ready", "directory", c.options.Directory)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for certificates: %w (last: %w)", context.Cause(ctx), err)
		}
		if reason := err.Error(); reason != logged {
			c.log.Info("waiting for certificates", "reason", reason)
			logged = reason
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for certificates: %w (last: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func (c *Certificates) check(ctx context.Context) error {
	p, err := readValid(c.options.Directory, time.Now())
	if err != nil || c.published == nil {
		return err
	}
	return c.published.matches(ctx, p)
}

// Check is a readiness check. It returns an error before [Certificates.Wait] has
// returned nil, and later while the pair in the directory cannot be read or is not
// valid now. It asks nothing of the API server: a probe must not depend on it.
func (c *Certificates) Check(*http.Request) error {
	if !c.ready.Load() {
		return errNotReady
	}
	_, err := readValid(c.options.Directory, time.Now())
	return err
}

func readValid(directory string, now time.Time) (*pair, error) {
	p, err := readPair(directory)
	if err != nil {
		return nil, err
	}
	return p, p.validAt(now)
}
