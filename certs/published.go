package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// published is what the API server holds of the certificate. The rotator's own word
// is not enough: it reports readiness also where the webhook configuration was not
// found, and looks for the mounted files at intervals that double to minutes.
type published struct {
	// reader is not cached: only two objects are read, by name, and a cache would
	// need leave to list them all.
	reader  client.Reader
	options Options
}

// matches returns an error unless p is the Secret's pair and every webhook's
// caBundle verifies it.
func (s *published) matches(ctx context.Context, p *pair) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: s.options.Namespace, Name: s.options.SecretName}
	if err := s.reader.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("get secret: %w", err)
	}
	if !bytes.Equal(p.cert, secret.Data[certFile]) || !bytes.Equal(p.key, secret.Data[keyFile]) {
		return fmt.Errorf("secret %s is not yet what is mounted in %s", key, s.options.Directory)
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := s.reader.Get(ctx, types.NamespacedName{Name: s.options.WebhookConfiguration}, configuration); err != nil {
		return fmt.Errorf("get webhook configuration: %w", err)
	}
	if len(configuration.Webhooks) == 0 {
		return fmt.Errorf("webhook configuration %s has no webhooks", configuration.Name)
	}
	var errs []error
	for _, webhook := range configuration.Webhooks {
		if err := p.verify(webhook.ClientConfig.CABundle, s.options.dnsName(), time.Now()); err != nil {
			errs = append(errs, fmt.Errorf("verify certificate with the caBundle of webhook %s: %w", webhook.Name, err))
		}
	}
	return errors.Join(errs...)
}
