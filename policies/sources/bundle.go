package sources

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/download"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const (
	// pollTimeout ends a request to a server that hangs. A bundle of Rego is small.
	pollTimeout = 15 * time.Second
	// firstRetry is how long to wait after the first failure. It doubles up to the
	// interval.
	firstRetry = time.Second
)

// bundleSource is a bundle that is fetched again and again.
type bundleSource struct {
	options BundleOptions
	timeout time.Duration
	log     logr.Logger

	etag string // of the bundle that was delivered last
}

// NewBundle returns a bundle as a source. It is verified when it is fetched and again
// when the one that an earlier process kept is read.
func NewBundle(o BundleOptions, log logr.Logger) Source {
	return &bundleSource{options: o, timeout: pollTimeout, log: log}
}

// ID implements [Source].
func (b *bundleSource) ID() ID { return ID{KindBundle, b.options.URL} }

// Run implements [Source].
func (b *bundleSource) Run(ctx context.Context, deliver func(Delivery)) error {
	retry := b.backoff()
	for first := true; ; first = false {
		delay := wait.Jitter(b.options.PollInterval.Duration, 0.1)
		d := b.poll(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is what was asked for
		}
		if d.Err != nil {
			d.Err = fmt.Errorf("fetch bundle %s: %w", b.options.URL, d.Err)
			delay = retry.Step()
		} else {
			retry = b.backoff()
		}
		if first && d.Err != nil {
			d = b.fallBack(d.Err)
		}
		deliver(d)
		if !sleep(ctx, delay) {
			return nil
		}
	}
}

func (b *bundleSource) backoff() wait.Backoff {
	return wait.Backoff{Duration: min(firstRetry, b.options.PollInterval.Duration), Factor: 2, Jitter: 0.1, Steps: 64, Cap: b.options.PollInterval.Duration}
}

// poll asks the server once.
func (b *bundleSource) poll(ctx context.Context) Delivery {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	update, err := b.download(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return Delivery{Err: fmt.Errorf("no answer within %v: %w", b.timeout, err)}
	case err != nil && b.options.Unsigned && strings.Contains(err.Error(), "verification key not provided"):
		return Delivery{Err: fmt.Errorf("the bundle is signed, and the configuration says unsigned: give keysDirectory instead: %w", err)}
	case err != nil:
		return Delivery{Err: err}
	}
	if update.Bundle == nil {
		return Delivery{} // as before
	}
	raw, err := rawOf(update)
	if err != nil {
		return Delivery{Err: err}
	}
	d := deliveryOf(update.Bundle)
	if d.Err != nil {
		return d
	}
	b.etag = update.ETag
	d.ETag = update.ETag
	d.Keep = func() error { return b.options.persist(raw) }
	return d
}

// fallBack delivers what an earlier process kept, along with why it must.
func (b *bundleSource) fallBack(cause error) Delivery {
	kept, err := b.options.persisted()
	if err != nil {
		return Delivery{Err: errors.Join(cause, err)}
	}
	d := deliveryOf(kept)
	d.Err = errors.Join(cause, d.Err)
	d.Persisted = true
	b.log.Info("the bundle cannot be fetched: taking the one that was kept", "url", b.options.URL, "cause", cause.Error())
	return d
}

// deliveryOf takes the Rego files of a bundle. They are compiled later, with everything
// that a policy must pass: what OPA has parsed here is not used.
func deliveryOf(b *bundle.Bundle) Delivery {
	modules := policies.Modules{}
	for i := range b.Modules {
		modules[strings.TrimPrefix(path.Clean(b.Modules[i].Path), "/")] = string(b.Modules[i].Raw)
	}
	if len(modules) == 0 {
		return Delivery{Err: errors.New("no .rego file in the bundle")}
	}
	return Delivery{Modules: modules, Revision: b.Manifest.Revision}
}

// rawOf is the bundle as it was sent.
func rawOf(update download.Update) ([]byte, error) {
	buffer, ok := update.Raw.(interface{ Bytes() []byte })
	if !ok {
		return nil, fmt.Errorf("the downloader hands over a %T", update.Raw)
	}
	return buffer.Bytes(), nil
}
