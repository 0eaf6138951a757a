package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// published is what the API server holds of the certificate. The rotator's own word
// is not enough: it reports readiness also where a webhook configuration was not
// found, and looks for the mounted files at intervals that double to minutes.
type published struct {
	// reader is not cached: only three objects are read, by name, and a cache would
	// need leave to list them all.
	reader  client.Reader
	options Options
}

// matches returns an error unless p is the Secret's pair and the caBundle of every
// webhook of both configurations verifies it.
func (s *published) matches(ctx context.Context, p *pair) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: s.options.Namespace, Name: s.options.SecretName}
	if err := s.reader.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("get secret: %w", err)
	}
	if !bytes.Equal(p.cert, secret.Data[certFile]) || !bytes.Equal(p.key, secret.Data[keyFile]) {
		return fmt.Errorf("secret %s is not yet what is mounted in %s", key, s.options.Directory)
	}
	mutating, validating, err := s.bundles(ctx)
	return errors.Join(err, s.verify(p, "mutating", mutating), s.verify(p, "validating", validating))
}

// bundles returns the caBundles of both configurations, by the names of their webhooks.
func (s *published) bundles(ctx context.Context) (mutating, validating map[string][]byte, err error) {
	name := types.NamespacedName{Name: s.options.WebhookConfiguration}
	m, v := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := s.reader.Get(ctx, name, m); err != nil {
		return nil, nil, fmt.Errorf("get mutating webhook configuration: %w", err)
	}
	if err := s.reader.Get(ctx, name, v); err != nil {
		return nil, nil, fmt.Errorf("get validating webhook configuration: %w", err)
	}
	mutating, validating = map[string][]byte{}, map[string][]byte{}
	for _, webhook := range m.Webhooks {
		mutating[webhook.Name] = webhook.ClientConfig.CABundle
	}
	for _, webhook := range v.Webhooks {
		validating[webhook.Name] = webhook.ClientConfig.CABundle
	}
	return mutating, validating, nil
}

// verify returns an error unless there are webhooks and the caBundle of each verifies p.
func (s *published) verify(p *pair, kind string, bundles map[string][]byte) error {
	if len(bundles) == 0 {
		return fmt.Errorf("%s webhook configuration %s has no webhooks", kind, s.options.WebhookConfiguration)
	}
	var errs []error
	for _, webhook := range slices.Sorted(maps.Keys(bundles)) {
		if err := p.verify(bundles[webhook], s.options.dnsName(), time.Now()); err != nil {
			errs = append(errs, fmt.Errorf("verify certificate with the caBundle of %s webhook %s: %w", kind, webhook, err))
		}
	}
	return errors.Join(errs...)
}
