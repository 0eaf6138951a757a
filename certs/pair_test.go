package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testName = "router.router.svc"

// pemPair returns a self-signed certificate that is valid from and until the given
// times, counted from now, and its key.
func pemPair(t *testing.T, from, until time.Duration) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{testName},
		NotBefore:             time.Now().Add(from),
		NotAfter:              time.Now().Add(until),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func write(t *testing.T, directory string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, -time.Hour, time.Hour)
	other, _ := pemPair(t, -time.Hour, time.Hour)
	p, err := parsePair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		bundle []byte
		name   string
		at     time.Duration
		want   string // "" is accepted
	}{
		"accepted":            {cert, testName, 0, ""},
		"no bundle":           {nil, testName, 0, "no certificate"},
		"another CA":          {other, testName, 0, "unknown authority"},
		"two CAs":             {append(append([]byte{}, other...), cert...), testName, 0, ""},
		"for another Service": {cert, "router.elsewhere.svc", 0, "valid for"},
		"expired":             {cert, testName, 2 * time.Hour, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca, err := p.verify(test.bundle, test.name, time.Now().Add(test.at))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("verify: %v, want %q", err, test.want)
			}
			if err == nil && !ca.Equal(p.leaf()) {
				t.Error("another certificate is said to vouch for it")
			}
		})
	}
}
