package registration

import (
	"context"
	"fmt"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
)

// Registration is the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration
// of one name. It remembers nothing: each call asks the API server for two objects by
// name, which takes no more of RBAC than get and patch on that name.
type Registration struct {
	client admissionregistrationv1client.AdmissionregistrationV1Interface
	name   string
}

// New returns the registration of that name, of which both objects must exist.
func New(client admissionregistrationv1client.AdmissionregistrationV1Interface, name string) *Registration {
	return &Registration{client: client, name: name}
}

// Hook is one webhook of either configuration.
type Hook struct {
	// Kind is "mutating" or "validating", Name the webhook's within its configuration.
	Kind, Name string
	// ServerName is what the certificate must be for: the Service's name, or the URL's
	// host.
	ServerName string
	// CABundle is what must vouch for it, as PEM.
	CABundle []byte
	// Rules are what it is asked about; none before it is armed.
	Rules []admissionregistrationv1.RuleWithOperations
}

// Hooks returns every webhook as it is stored: the mutating ones first, as listed there.
func (r *Registration) Hooks(ctx context.Context) ([]Hook, error) {
	mutating, err := r.client.MutatingWebhookConfigurations().Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get mutating webhook configuration: %w", err)
	}
	validating, err := r.client.ValidatingWebhookConfigurations().Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get validating webhook configuration: %w", err)
	}
	var hooks []Hook
	for i := range mutating.Webhooks {
		hook := &mutating.Webhooks[i]
		hooks = append(hooks, newHook("mutating", hook.Name, &hook.ClientConfig, hook.Rules))
	}
	for i := range validating.Webhooks {
		hook := &validating.Webhooks[i]
		hooks = append(hooks, newHook("validating", hook.Name, &hook.ClientConfig, hook.Rules))
	}
	if len(mutating.Webhooks) == 0 || len(validating.Webhooks) == 0 {
		return nil, fmt.Errorf("webhook configurations %s: %d mutating and %d validating webhooks, want some of both",
			r.name, len(mutating.Webhooks), len(validating.Webhooks))
	}
	return hooks, nil
}

func newHook(kind, name string, c *admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) Hook {
	hook := Hook{Kind: kind, Name: name, CABundle: c.CABundle, Rules: rules}
	switch {
	case c.Service != nil:
		hook.ServerName = c.Service.Name + "." + c.Service.Namespace + ".svc"
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			hook.ServerName = u.Hostname()
		}
	}
	return hook
}
