package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// newCertificates makes what the API server is told of this process, as far as the
// configuration says that it is this process's business.
func (r *router) newCertificates(kube *rest.Config) error {
	clients, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	c := certs.Config{Options: r.config.Certs, Secrets: clients.CoreV1().Secrets(r.config.Certs.Namespace), Log: r.log}
	if name := r.config.Webhook.Configuration; name != "" {
		registered := registration.New(clients.AdmissionregistrationV1(), name)
		c.Registry = registered
		r.armer = &registration.Armer{Registration: registered, Ready: r.mayArm, Log: r.log}
		if err := metrics.Registry.Register(r.armer); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	r.certificates = certs.New(c)
	if err := metrics.Registry.Register(r.certificates); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// runArmer tells the API server to ask, once this process may be asked.
func (r *router) runArmer(ctx context.Context) error {
	if r.armer == nil {
		close(r.armed)
		return nil
	}
	return r.armer.Run(ctx, sync.OnceFunc(func() { close(r.armed) }))
}

// mayArm returns an error unless this process answers, and the API server would accept
// its certificate. That a probe found it ready is not enough: the Service sends to it a
// moment later.
func (r *router) mayArm(hooks []registration.Hook) error {
	found := r.foundReady.Load()
	switch {
	case r.state.Load() != serving:
		return errors.New("this replica does not serve")
	case found == nil && r.config.Health.BindAddress == "0":
		// Nobody can ask, so nobody is waited for.
	case found == nil:
		return errors.New("no probe has found this replica ready")
	case time.Since(*found) < r.config.Webhook.ArmAfter.Duration:
		return errors.New("this replica was found ready a moment ago")
	}
	return r.certificates.Accepts(hooks)
}

// ownAddress is where this process reaches its own webhook.
func (r *router) ownAddress() string {
	host := r.config.Webhook.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, strconv.Itoa(r.config.Webhook.Port))
}
