package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// serverName is what the API server calls the webhook.
const serverName = stack.Release + "." + stack.Namespace + ".svc"

// certificates is what is stored and served at one time.
type certificates struct {
	secret *corev1.Secret
	// bundles are the caBundles of the webhooks, one entry where all have the same.
	bundles [][]byte
	// served are the replicas' leaves, in their order.
	served []*x509.Certificate
	// handshakes that led to them, each accepted by a client that trusts a caBundle.
	handshakes int
}

// settled reports whether every replica serves the leaf that is stored, and every webhook
// trusts what is stored.
func (c *certificates) settled() bool {
	for _, leaf := range c.served {
		if !bytes.Equal(leaf.Raw, decode(c.secret.Data["tls.crt"])) {
			return false
		}
	}
	return len(c.bundles) == 1 && bytes.Equal(c.bundles[0], c.secret.Data["ca.crt"])
}

// leaf and ca tell certificates apart: the serial numbers of those that the product makes
// are all alike.
func (c *certificates) leaf() string { return fingerprint(decode(c.secret.Data["tls.crt"])) }
func (c *certificates) ca() string   { return fingerprint(decode(c.secret.Data["ca.crt"])) }

func fingerprint(der []byte) string { return fmt.Sprintf("%.6x", sha256.Sum256(der)) }

func decode(certificate []byte) []byte {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil
	}
	return block.Bytes
}

// look asks every replica for its certificate, as an API server would that has just read
// its configuration. A replica that it would not accept is an error.
func (h *harness) look(ctx context.Context) (*certificates, error) {
	c := &certificates{secret: &corev1.Secret{}}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(h.Client.Get(ctx, client.ObjectKey{Name: stack.Release}, mutating),
		h.Client.Get(ctx, client.ObjectKey{Name: stack.Release}, validating)); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	trust := func(bundle []byte) {
		if !seen[string(bundle)] {
			seen[string(bundle)] = true
			c.bundles = append(c.bundles, bundle)
		}
	}
	for i := range mutating.Webhooks {
		trust(mutating.Webhooks[i].ClientConfig.CABundle)
	}
	for i := range validating.Webhooks {
		trust(validating.Webhooks[i].ClientConfig.CABundle)
	}
	for _, router := range h.Service.Routers() {
		var leaf *x509.Certificate
		for _, bundle := range c.bundles {
			var err error
			if leaf, err = handshake(ctx, strings.TrimPrefix(router.URL, "https://"), bundle); err != nil {
				return nil, fmt.Errorf("a client that trusts a caBundle: %w", err)
			}
			c.handshakes++
		}
		c.served = append(c.served, leaf)
	}
	return c, h.Client.Get(ctx, secretKey, c.secret)
}

var secretKey = client.ObjectKey{Namespace: stack.Namespace, Name: stack.Release + "-tls"}

// handshake returns the leaf that is served at an address.
func handshake(ctx context.Context, address string, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{RootCAs: roots, ServerName: serverName}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// follow looks until done, and returns what it saw last and the number of handshakes.
func (h *harness) follow(ctx context.Context, what string, done func(*certificates) bool) (*certificates, int, error) {
	handshakes := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		c, err := h.look(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", what, err)
		}
		if handshakes += c.handshakes; c.settled() && done(c) {
			return c, handshakes, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil, 0, fmt.Errorf("%s: not within %s", what, patience)
}

// edit changes the Secret's data.
func (h *harness) edit(ctx context.Context, change func(data map[string][]byte)) error {
	secret := &corev1.Secret{}
	if err := h.Client.Get(ctx, secretKey, secret); err != nil {
		return err
	}
	change(secret.Data)
	return h.Client.Update(ctx, secret)
}

// renewLeaf has the leaf renewed, and the CA stay.
func (h *harness) renewLeaf(ctx context.Context) (string, error) {
	before, first, err := h.follow(ctx, "serve the stored leaf", func(*certificates) bool { return true })
	if err != nil {
		return "", err
	}
	if err := h.edit(ctx, func(data map[string][]byte) { delete(data, "tls.crt") }); err != nil {
		return "", err
	}
	after, more, err := h.follow(ctx, "renew the leaf", func(c *certificates) bool { return c.leaf() != before.leaf() && c.secret.Data["tls.crt"] != nil })
	if err != nil {
		return "", err
	}
	if after.ca() != before.ca() {
		return "", errors.New("the CA was replaced with the leaf")
	}
	return fmt.Sprintf("leaf %s, then %s, of the same CA; %d handshakes with what a caBundle said, none refused", before.leaf(), after.leaf(), first+more), nil
}

// replaceCA has the CA replaced, and the old one dropped.
func (h *harness) replaceCA(ctx context.Context) (string, error) {
	before, first, err := h.follow(ctx, "serve the stored leaf", func(*certificates) bool { return true })
	if err != nil {
		return "", err
	}
	if err := h.edit(ctx, func(data map[string][]byte) { delete(data, "ca.key") }); err != nil {
		return "", err
	}
	both, more, err := h.follow(ctx, "serve a leaf of the new CA", func(c *certificates) bool {
		return c.ca() != before.ca() && c.leaf() != before.leaf()
	})
	if err != nil {
		return "", err
	}
	old := before.secret.Data["ca.crt"]
	if !bytes.HasSuffix(both.bundles[0], old) {
		return "", errors.New("the old CA is not trusted beside the new one")
	}
	if err := h.edit(ctx, func(data map[string][]byte) { data["ca.crt"] = bytes.TrimSuffix(data["ca.crt"], old) }); err != nil {
		return "", err
	}
	after, last, err := h.follow(ctx, "drop the old CA", func(c *certificates) bool { return !bytes.Contains(c.bundles[0], old) })
	if err != nil {
		return "", err
	}
	if after.leaf() != both.leaf() {
		return "", errors.New("the leaf was replaced with the old CA")
	}
	return fmt.Sprintf("CA %s, then both, then %s alone; leaf %s, then %s; %d handshakes with what a caBundle said, none refused",
		before.ca(), after.ca(), before.leaf(), after.leaf(), first+more+last), nil
}
