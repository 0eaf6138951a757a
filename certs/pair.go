package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// The keys of a pair, as files and as in a Secret of type kubernetes.io/tls, and those of
// the CA.
const (
	certKey   = "tls.crt"
	keyKey    = "tls.key"
	caCertKey = "ca.crt"
	caKeyKey  = "ca.key"
)

// pair is a certificate, with what was signed to vouch for it, and its key.
type pair struct {
	tls   *tls.Certificate
	chain []*x509.Certificate
}

// parsePair returns an error unless the key is the certificate's.
func parsePair(cert, key []byte) (*pair, error) {
	if len(cert) == 0 || len(key) == 0 {
		return nil, fmt.Errorf("%s has %d bytes and %s %d: want both", certKey, len(cert), keyKey, len(key))
	}
	parsed, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("parse certificate and key: %w", err)
	}
	p := &pair{tls: &parsed}
	for _, der := range parsed.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		p.chain = append(p.chain, cert)
	}
	return p, nil
}

func (p *pair) leaf() *x509.Certificate { return p.chain[0] }

func (p *pair) equal(other *pair) bool {
	return p != nil && other != nil && bytes.Equal(p.leaf().Raw, other.leaf().Raw)
}

// validAt returns an error if the leaf is not valid at that time.
func (p *pair) validAt(now time.Time) error {
	leaf := p.leaf()
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	}
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("certificate expired at %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

var errNoCA = errors.New("no certificate in it")

// verify returns the CA that vouches for the pair, or an error unless a client that
// trusts the bundle and dials name accepts it at that time, as the API server does with a
// caBundle.
func (p *pair) verify(bundle []byte, name string, now time.Time) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errNoCA
	}
	intermediates := x509.NewCertPool()
	for _, cert := range p.chain[1:] {
		intermediates.AddCert(cert)
	}
	chains, err := p.leaf().Verify(x509.VerifyOptions{
		DNSName:       name,
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   now,
	})
	if err != nil {
		return nil, err
	}
	return chains[0][len(chains[0])-1], nil
}

// parseBundle returns the certificates of a PEM document, in their order, and leaves out
// what is none.
func parseBundle(bundle []byte) []*x509.Certificate {
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return certs
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, cert)
		}
	}
}

func encodeBundle(certs []*x509.Certificate) []byte {
	var bundle []byte
	for _, cert := range certs {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return bundle
}
