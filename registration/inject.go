package registration

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// The field managers. They are two, so that a replica that starts and injects a CA does
// not, by what it leaves out, withdraw the rules that another has applied.
const (
	injector = "runtimeclass-router"
	armer    = "runtimeclass-router-arming"
)

// Inject makes bundle, PEM, the caBundle of every webhook. It is called with what Hooks
// returned, and applies nothing where that is the bundle already.
func (r *Registration) Inject(ctx context.Context, hooks []Hook, bundle []byte) error {
	mutating := apply.MutatingWebhookConfiguration(r.name)
	validating := apply.ValidatingWebhookConfiguration(r.name)
	// An apply replaces what the manager applied before, so it carries every webhook.
	var changed [2]bool
	for _, hook := range hooks {
		differs := !bytes.Equal(hook.CABundle, bundle)
		config := apply.WebhookClientConfig().WithCABundle(bundle...)
		if hook.Kind == "mutating" {
			mutating.WithWebhooks(apply.MutatingWebhook().WithName(hook.Name).WithClientConfig(config))
			changed[0] = changed[0] || differs
		} else {
			validating.WithWebhooks(apply.ValidatingWebhook().WithName(hook.Name).WithClientConfig(config))
			changed[1] = changed[1] || differs
		}
	}
	return r.apply(ctx, injector, mutating, validating, changed)
}

// apply applies what has changed: the mutating configuration, then the validating one.
func (r *Registration) apply(ctx context.Context, manager string, mutating *apply.MutatingWebhookConfigurationApplyConfiguration,
	validating *apply.ValidatingWebhookConfigurationApplyConfiguration, changed [2]bool,
) error {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if changed[0] {
		if _, err := r.client.MutatingWebhookConfigurations().Apply(ctx, mutating, options); err != nil {
			return fmt.Errorf("apply mutating webhook configuration: %w", err)
		}
	}
	if changed[1] {
		if _, err := r.client.ValidatingWebhookConfigurations().Apply(ctx, validating, options); err != nil {
			return fmt.Errorf("apply validating webhook configuration: %w", err)
		}
	}
	return nil
}
