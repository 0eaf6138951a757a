package certs

import (
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// narrowed is a manager whose configuration asks for less. The rotator makes its
// cache from it, without a way to say that one Secret and one webhook configuration
// of each kind are all it needs.
type narrowed struct {
	manager.Manager
	config *rest.Config
}

// GetConfig returns the narrowed configuration.
func (n narrowed) GetConfig() *rest.Config { return n.config }

// narrow makes lists and watches of Secrets and webhook configurations ask for the
// named object only. RBAC then grants list and watch by resourceNames, which it does
// for requests with such a field selector, and the webhook cannot read the other
// Secrets of its namespace.
func narrow(mgr manager.Manager, o *Options) manager.Manager {
	names := map[string]string{
		"/api/v1/namespaces/" + o.Namespace + "/secrets":                        o.SecretName,
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations":   o.WebhookConfiguration,
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": o.WebhookConfiguration,
	}
	config := rest.CopyConfig(mgr.GetConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &selector{next: next, names: names}
	})
	return narrowed{Manager: mgr, config: config}
}

// selector adds a field selector to what reads a collection.
type selector struct {
	next  http.RoundTripper
	names map[string]string // the object to select, by the end of a collection's path
}

// RoundTrip implements http.RoundTripper.
func (s *selector) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return s.next.RoundTrip(request)
	}
	for path, name := range s.names {
		// The API server may lie behind a prefix.
		if !strings.HasSuffix(request.URL.Path, path) {
			continue
		}
		request = request.Clone(request.Context()) // which a RoundTripper may not change
		query := request.URL.Query()
		query.Set("fieldSelector", "metadata.name="+name)
		request.URL.RawQuery = query.Encode()
		break
	}
	return s.next.RoundTrip(request)
}
