package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// The Service that the API server reaches every webhook through. It leads to this
// machine, so that no kube-proxy is needed; a configuration names the port. To a Service
// the API server speaks HTTP/1.1, as in a cluster: to a URL it would speak HTTP/2.
const (
	serviceNamespace = "bench-webhooks"
	serviceName      = "webhooks"
)

func (h *harness) createServiceNamespace(ctx context.Context) error {
	if err := h.createNamespace(ctx, serviceNamespace, "trusted"); err != nil {
		return err
	}
	return h.Client.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: serviceNamespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
}

func (h *harness) clientConfig(port int, path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		CABundle: h.certificate.pem,
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: serviceNamespace, Name: serviceName, Path: &path, Port: ptr.To(int32(port)),
		},
	}
}

// chartHooks are the chart's webhooks on pods, as they are installed.
type chartHooks struct {
	mutating   admissionregistrationv1.MutatingWebhookConfiguration
	validating admissionregistrationv1.ValidatingWebhookConfiguration
}

func (h *harness) chartHooks(ctx context.Context) (*chartHooks, error) {
	c := &chartHooks{}
	key := client.ObjectKey{Name: stack.Release}
	if err := h.Client.Get(ctx, key, &c.mutating); err != nil {
		return nil, fmt.Errorf("read the chart's webhooks: %w", err)
	}
	if err := h.Client.Get(ctx, key, &c.validating); err != nil {
		return nil, fmt.Errorf("read the chart's webhooks: %w", err)
	}
	return c, nil
}

// pointChartAt makes the API server call another router, through the Service.
func (h *harness) pointChartAt(ctx context.Context, r *router) error {
	c, err := h.chartHooks(ctx)
	if err != nil {
		return err
	}
	for i := range c.mutating.Webhooks {
		if err := h.redirect(&c.mutating.Webhooks[i].ClientConfig, r); err != nil {
			return err
		}
	}
	for i := range c.validating.Webhooks {
		if err := h.redirect(&c.validating.Webhooks[i].ClientConfig, r); err != nil {
			return err
		}
	}
	if err := h.Client.Update(ctx, &c.mutating); err != nil {
		return err
	}
	return h.Client.Update(ctx, &c.validating)
}

func (h *harness) redirect(config *admissionregistrationv1.WebhookClientConfig, r *router) error {
	path, err := pathOf(*config.URL)
	if err != nil {
		return err
	}
	*config = h.clientConfig(r.port, path)
	return nil
}

// selectNamespace makes a selector of one namespace.
func selectNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// mutateBy sends the pods that are created in a namespace to a webhook that is no part of
// the product.
func (h *harness) mutateBy(ctx context.Context, namespace string, port int) error {
	return h.Client.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "pods.bench.example.com",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            h.clientConfig(port, "/mutate-pod"),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: selectNamespace(namespace),
		}},
	})
}

// mutateByRouter is the chart's mutating webhook for one namespace.
func (h *harness) mutateByRouter(ctx context.Context, namespace string) error {
	c, err := h.chartHooks(ctx)
	if err != nil {
		return err
	}
	hooks := slices.Clone(c.mutating.Webhooks)
	for i := range hooks {
		hooks[i].NamespaceSelector = selectNamespace(namespace)
	}
	return h.Client.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Webhooks: hooks})
}

// validateByRouter is the chart's validating webhooks for one namespace. Those that
// select by it already, of policies, stay the chart's.
func (h *harness) validateByRouter(ctx context.Context, namespace string) error {
	c, err := h.chartHooks(ctx)
	if err != nil {
		return err
	}
	var hooks []admissionregistrationv1.ValidatingWebhook
	for _, hook := range c.validating.Webhooks {
		if _, one := hook.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]; !one {
			hook.NamespaceSelector = selectNamespace(namespace)
			hooks = append(hooks, hook)
		}
	}
	return h.Client.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Webhooks: hooks})
}

func pathOf(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return at.Path, nil
}
