package webhook

import (
	"crypto/tls"

	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// ServerOptions say where the webhook listens and with what certificate.
type ServerOptions struct {
	Host string
	Port int
	// CertDir holds tls.crt and tls.key, which are read again when they change.
	CertDir string
}

// NewServer returns controller-runtime's webhook server with the endpoints on their
// paths. It stops listening when the context of its Start ends, and returns when what
// it has accepted is answered.
func NewServer(options ServerOptions, endpoints map[string]*Endpoint) ctrlwebhook.Server {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host:    options.Host,
		Port:    options.Port,
		CertDir: options.CertDir,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
	})
	for path, endpoint := range endpoints {
		server.Register(path, endpoint)
	}
	return server
}
