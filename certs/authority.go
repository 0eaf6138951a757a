package certs

import (
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// owner is the name of the CAs.
const owner = "runtimeclass-router"

const (
	// caLife and leafLife are how long what is made is valid. Each is renewed at two thirds
	// of it: a CA after two years, and a leaf after 60 days, which leaves 30 in which
	// something may be wrong with the renewal.
	caLife   = 3 * 365 * 24 * time.Hour
	leafLife = 90 * 24 * time.Hour
	// backdate is for clocks that differ.
	backdate = time.Hour
	// settle is how long a new CA has been in every caBundle before a leaf of it is made: an
	// API server learns of a changed configuration by a watch, in a second or two.
	settle = 30 * time.Second
	// overlap is how long an old CA stays in the caBundle after the first leaf of the new one
	// was made. A replica serves a new leaf in seconds, and one whose watches hear nothing
	// for three minutes is not ready, so it is long past the last replica's change.
	overlap = time.Hour
)

// authority makes and renews what the Secret holds: ca.crt, the CAs that are trusted, of
// which the first signs; ca.key, the first one's; tls.crt and tls.key, the leaf.
//
// A CA is replaced in three steps, each a change of the Secret that any replica may make:
// the new CA is trusted beside the old one, which has signed the leaf; a leaf of the new
// CA is made; the old CA is dropped. The caBundle is always ca.crt, so that no replica
// ever serves what an API server refuses.
type authority struct {
	generator *rotator.CertRotator
}

func newAuthority(o *Options) *authority {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return &authority{generator: &rotator.CertRotator{
		CAName:         owner,
		CAOrganization: owner,
		DNSName:        o.dnsName(),
		ExtraDNSNames: []string{
			o.dnsName() + ".cluster.local",
			o.ServiceName + "." + o.Namespace,
			o.ServiceName,
		},
		ExtKeyUsages: &usages,
	}}
}

// trust is what every caBundle was when last looked at, and since when; the zero value
// where they differed.
type trust struct {
	bundle string
	since  time.Time
}

// settled reports whether every API server knows the bundle.
func (t *trust) settled(bundle []byte, now time.Time) bool {
	return t.bundle != "" && t.bundle == string(bundle) && now.Sub(t.since) >= settle
}

// next returns what the Secret should hold and what is done by that, or the same data and
// "" where it is right. The data given is not changed.
func (a *authority) next(data map[string][]byte, now time.Time, trusted trust) (map[string][]byte, string, error) {
	cas := unexpired(parseBundle(data[caCertKey]), now)
	signer := signerOf(cas, data[caKeyKey])
	leaf, err := parsePair(data[certKey], data[keyKey])
	usable := err == nil
	if usable {
		_, err = leaf.verify(encodeBundle(cas), a.generator.DNSName, now)
		usable = err == nil
	}
	next := maps.Clone(data)
	if next == nil {
		next = map[string][]byte{}
	}
	if signer == nil || !now.Before(renewal(signer.Cert)) {
		if signer, err = a.generator.CreateCACert(now.Add(-backdate), now.Add(caLife)); err != nil {
			return nil, "", fmt.Errorf("make a CA: %w", err)
		}
		cas = append([]*x509.Certificate{signer.Cert}, cas...)
		next[caCertKey], next[caKeyKey] = encodeBundle(cas), signer.KeyPEM
		if usable {
			return next, "new CA, trusted beside the old one", nil
		}
		return a.issue(next, signer, now, "new CA and leaf")
	}
	switch signed := usable && leaf.leaf().CheckSignatureFrom(signer.Cert) == nil; {
	case !usable:
		return a.issue(next, signer, now, "new leaf: "+err.Error())
	case !signed && trusted.settled(data[caCertKey], now):
		return a.issue(next, signer, now, "new leaf, of the new CA")
	case signed && !now.Before(renewal(leaf.leaf())):
		return a.issue(next, signer, now, "new leaf, renewed at two thirds of the old one's life")
	case signed && len(cas) > 1 && now.Sub(leaf.leaf().NotBefore) >= backdate+overlap:
		next[caCertKey] = encodeBundle(cas[:1])
		return next, "the old CA is dropped", nil
	}
	return data, "", nil
}

func (a *authority) issue(data map[string][]byte, ca *rotator.KeyPairArtifacts, now time.Time, why string) (map[string][]byte, string, error) {
	end := now.Add(leafLife)
	if end.After(ca.Cert.NotAfter) {
		end = ca.Cert.NotAfter
	}
	cert, key, err := a.generator.CreateCertPEM(ca, now.Add(-backdate), end)
	if err != nil {
		return nil, "", fmt.Errorf("make a certificate: %w", err)
	}
	data[certKey], data[keyKey] = cert, key
	return data, why, nil
}

// signerOf returns the first CA with its key, and nil unless the key is its.
func signerOf(cas []*x509.Certificate, key []byte) *rotator.KeyPairArtifacts {
	if len(cas) == 0 || !cas[0].IsCA {
		return nil
	}
	first := encodeBundle(cas[:1])
	p, err := parsePair(first, key)
	if err != nil {
		return nil
	}
	private, ok := p.tls.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil // cert-controller signs with RSA only
	}
	return &rotator.KeyPairArtifacts{Cert: cas[0], Key: private, CertPEM: first, KeyPEM: key}
}

// unexpired leaves out what has expired.
func unexpired(cas []*x509.Certificate, now time.Time) []*x509.Certificate {
	var kept []*x509.Certificate
	for _, ca := range cas {
		if !now.After(ca.NotAfter) {
			kept = append(kept, ca)
		}
	}
	return kept
}

// renewal is at two thirds of a certificate's life.
func renewal(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 3 * 2)
}
