package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
)

// certificate is what every webhook serves: for this machine, and for the Service that
// the API server knows it by.
type certificate struct {
	dir string // with tls.crt and tls.key
	pem []byte // its own CA
}

func newCertificate(scratch string) (*certificate, error) {
	host := serviceName + "." + serviceNamespace + ".svc"
	public, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return nil, err
	}
	c := &certificate{dir: filepath.Join(scratch, "tls"), pem: public}
	return c, errors.Join(
		os.Mkdir(c.dir, 0o700),
		os.WriteFile(filepath.Join(c.dir, "tls.crt"), public, 0o600),
		os.WriteFile(filepath.Join(c.dir, "tls.key"), key, 0o600),
	)
}

// client speaks HTTP/1.1, as the API server does to a Service, over at most that many
// connections, which it keeps.
func (c *certificate) client(connections int) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pem)
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
	}}
}
