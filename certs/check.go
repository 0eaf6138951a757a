package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Check is a readiness check. It returns an error before there is a pair to serve, when
// the one that is served is not valid now, and when another one is stored, other than
// while the API server would not accept that yet. It asks nothing of the API server: a
// probe must not depend on it.
func (c *Certificates) Check(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		return errNotReady
	}
	if c.held == nil && !c.served.equal(c.stored) {
		return errors.New("the certificate that is served is not the one that is stored")
	}
	return c.served.validAt(time.Now())
}

// CheckServed returns an error unless a handshake with the server at the address yields
// the certificate that should be served.
func (c *Certificates) CheckServed(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	before := c.current()
	// What is compared is the certificate itself, so nobody needs to vouch for it.
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("ask the webhook for its certificate: %w", err)
	}
	defer connection.Close()
	answered := connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
	for _, p := range []*pair{before, c.current()} { // it may have changed meanwhile
		if p != nil && bytes.Equal(answered, p.leaf().Raw) {
			return nil
		}
	}
	return errors.New("the webhook answers with a stale certificate")
}

// current is the pair to serve, nil before there is one.
func (c *Certificates) current() *pair {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

var expiry = prometheus.NewDesc("runtimeclass_router_certificate_expiry_timestamp_seconds",
	"When a certificate expires, in seconds since 1970: the one that is served (leaf), and the one that vouches for it (ca).",
	[]string{"certificate"}, nil)

// Describe implements prometheus.Collector.
func (c *Certificates) Describe(out chan<- *prometheus.Desc) { out <- expiry }

// Collect implements prometheus.Collector.
func (c *Certificates) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served != nil {
		out <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(c.served.leaf().NotAfter.Unix()), "leaf")
	}
	if c.ca != nil {
		out <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(c.ca.NotAfter.Unix()), "ca")
	}
}
