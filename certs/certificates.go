package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// The certificate is looked at by polling: a Secret and two configurations by name are
// less to ask for than three watches are to keep, RBAC grants get by name without a field
// selector, and there is no silent watch to worry about.
const (
	// pollUnready is the interval until the first pair is served.
	pollUnready = time.Second
	// poll is the interval after that.
	poll = 5 * time.Second
	// patience bounds what is asked of the API server in one look.
	patience = 10 * time.Second
)

var errNotReady = errors.New("certificates are not ready yet")

// Registry is where the API server is told whom to trust. [registration.Registration]
// is one.
type Registry interface {
	// Hooks returns the webhooks, each with its caBundle.
	Hooks(ctx context.Context) ([]registration.Hook, error)
	// Inject makes bundle the caBundle of each.
	Inject(ctx context.Context, hooks []registration.Hook, bundle []byte) error
}

// Config is what New needs.
type Config struct {
	// Options must be valid.
	Options Options
	// Secrets are those of the options' namespace. They are not used in mode directory.
	Secrets corev1client.SecretInterface
	// Registry may be nil but for mode self. With one, a pair is served only if every
	// caBundle vouches for it; in mode directory it is not asked.
	Registry Registry
	Log      logr.Logger
}

// Certificates is the serving certificate.
type Certificates struct {
	options  Options
	source   source
	registry Registry
	log      logr.Logger
	ready    chan struct{} // closed when there is a pair to serve

	mu     sync.Mutex
	served *pair
	ca     *x509.Certificate // that vouches for it, if known
	stored *pair             // as last read
	held   error             // why stored is not served

	// What follows is Run's own.
	logged  string
	trusted trust
}

// New returns the certificate that the options describe. Nothing is asked of the cluster
// before [Certificates.Run].
func New(c Config) *Certificates {
	certificates := &Certificates{options: c.Options, registry: c.Registry, log: c.Log, ready: make(chan struct{})}
	switch c.Options.Mode {
	case Self:
		certificates.source = &kept{
			given:     given{secrets: c.Secrets, name: c.Options.SecretName},
			authority: newAuthority(&c.Options),
			log:       c.Log,
		}
	case Secret:
		certificates.source = &given{secrets: c.Secrets, name: c.Options.SecretName}
	default:
		certificates.source = directory(c.Options.Directory)
		certificates.registry = nil
	}
	return certificates
}

// Run keeps the certificate until ctx ends. What goes wrong is logged once and tried
// again: the last good pair is served meanwhile.
func (c *Certificates) Run(ctx context.Context) error {
	for {
		err := c.step(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end is what ctx asked for
		}
		c.tell(err)
		interval := poll
		select {
		case <-c.ready:
		default:
			interval = pollUnready
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// Ready is closed once there is a pair to serve: valid, and where there is a registry
// one that every webhook's caBundle vouches for. A server that starts after that never
// answers with a certificate that the API server refuses.
func (c *Certificates) Ready() <-chan struct{} { return c.ready }

// step looks at everything once.
func (c *Certificates) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := time.Now()
	data, err := c.source.read(ctx, now, c.trusted)
	if err != nil {
		return err
	}
	hooks, err := c.hooks(ctx, data[caCertKey], now)
	if err != nil {
		return err
	}
	p, err := parsePair(data[certKey], data[keyKey])
	if err == nil {
		err = p.validAt(now)
	}
	if err != nil {
		return err
	}
	ca, err := verifyAll(p, hooks, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored, c.held = p, err
	if err != nil {
		return err
	}
	if !p.equal(c.served) {
		c.log.Info("serving a certificate", "notAfter", p.leaf().NotAfter.UTC().Format(time.RFC3339), "sha256", fmt.Sprintf("%x", sha256.Sum256(p.leaf().Raw)))
	}
	if c.served == nil {
		close(c.ready)
	}
	c.served, c.ca = p, ca
	return nil
}

// hooks returns the webhooks, in mode self after their caBundle is made what it should be.
func (c *Certificates) hooks(ctx context.Context, bundle []byte, now time.Time) ([]registration.Hook, error) {
	if c.registry == nil {
		return nil, nil
	}
	hooks, err := c.registry.Hooks(ctx)
	if err != nil || c.options.Mode != Self {
		return hooks, err
	}
	injected := true
	for _, hook := range hooks {
		injected = injected && string(hook.CABundle) == string(bundle)
	}
	if injected {
		if c.trusted.bundle != string(bundle) {
			c.trusted = trust{bundle: string(bundle), since: now}
		}
		return hooks, nil
	}
	c.trusted = trust{}
	if err := c.registry.Inject(ctx, hooks, bundle); err != nil {
		return nil, err
	}
	c.log.Info("caBundle injected", "certificates", len(parseBundle(bundle)))
	return c.registry.Hooks(ctx)
}

// verifyAll returns the CA that vouches for the pair, nil where nobody says, or an error
// unless every webhook's caBundle does.
func verifyAll(p *pair, hooks []registration.Hook, now time.Time) (*x509.Certificate, error) {
	var ca *x509.Certificate
	var errs []error
	for _, hook := range hooks {
		found, err := p.verify(hook.CABundle, hook.ServerName, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("verify certificate with the caBundle of %s webhook %s: %w", hook.Kind, hook.Name, err))
			continue
		}
		ca = found
	}
	return ca, errors.Join(errs...)
}

// Accepts returns an error unless every webhook's caBundle vouches for what is served.
func (c *Certificates) Accepts(hooks []registration.Hook) error {
	served := c.current()
	if served == nil {
		return errNotReady
	}
	_, err := verifyAll(served, hooks, time.Now())
	return err
}

// GetCertificate is that of [tls.Config].
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	served := c.current()
	if served == nil {
		return nil, errNotReady
	}
	return served.tls, nil
}

// tell logs what is new.
func (c *Certificates) tell(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason == c.logged {
		return
	}
	c.logged = reason
	if err != nil {
		c.log.Info("waiting for certificates; what was served before is served on", "reason", reason)
	}
}
