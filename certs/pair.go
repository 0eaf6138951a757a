package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The files of a pair, as in a Secret of type kubernetes.io/tls.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// pair is a certificate, with what was signed to vouch for it, and its key.
type pair struct {
	cert, key []byte // PEM
	chain     []*x509.Certificate
}

// readPair reads the files of directory and returns an error unless the key is the
// certificate's.
func readPair(directory string) (*pair, error) {
	p := &pair{}
	var err error
	if p.cert, err = os.ReadFile(filepath.Join(directory, certFile)); err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	if p.key, err = os.ReadFile(filepath.Join(directory, keyFile)); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	parsed, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("parse certificate and key: %w", err)
	}
	for _, der := range parsed.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		p.chain = append(p.chain, cert)
	}
	return p, nil
}

// validAt returns an error if the leaf is not valid at that time.
func (p *pair) validAt(now time.Time) error {
	leaf := p.chain[0]
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	}
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("certificate expired at %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// verify returns an error unless a client that trusts the bundle and dials name
// accepts the pair at that time, as the API server does with a caBundle.
func (p *pair) verify(bundle []byte, name string, now time.Time) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("no certificate in it")
	}
	intermediates := x509.NewCertPool()
	for _, cert := range p.chain[1:] {
		intermediates.AddCert(cert)
	}
	_, err := p.chain[0].Verify(x509.VerifyOptions{
		DNSName:       name,
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   now,
	})
	return err
}
