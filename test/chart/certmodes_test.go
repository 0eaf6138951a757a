package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCertificateModes holds each mode to who writes what: the least of RBAC, caBundle where
// it is the values', and no Secret of ours where it is somebody else's.
func TestCertificateModes(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]struct {
		secret, injected, caBundle string
		rendered                   bool
		verbs                      []string
	}{
		"{}":                           {secret: release + "-tls", rendered: true, verbs: []string{"get", "update"}},
		"{certs: {mode: certManager}}": {secret: release + "-tls", injected: namespace + "/" + release, verbs: []string{"get"}},
		"{certs: {mode: secret, secretName: mine, caBundle: Q0E=}}": {secret: "mine", caBundle: "CA", verbs: []string{"get"}},
	} {
		objects := render(t, values)
		if got := configuration(t, objects).Certs.SecretName; got != want.secret {
			t.Errorf("%s: the product reads Secret %s, want %s", values, got, want.secret)
		}
		rendered := false
		for _, object := range objects {
			switch object := object.(type) {
			case *corev1.Secret:
				rendered = true
			case *rbacv1.Role:
				if diff := cmp.Diff(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{want.secret}, Verbs: want.verbs}, object.Rules[0]); diff != "" {
					t.Errorf("%s: rule of the Secret (-want +got):\n%s", values, diff)
				}
			case *admissionregistrationv1.MutatingWebhookConfiguration:
				checkInjection(t, values, object, &object.Webhooks[0].ClientConfig, want.injected, want.caBundle)
			case *admissionregistrationv1.ValidatingWebhookConfiguration:
				for i := range object.Webhooks {
					checkInjection(t, values, object, &object.Webhooks[i].ClientConfig, want.injected, want.caBundle)
				}
			}
		}
		if rendered != want.rendered {
			t.Errorf("%s: a Secret is rendered: %t", values, rendered)
		}
	}
}

func checkInjection(t *testing.T, values string, object client.Object, config *admissionregistrationv1.WebhookClientConfig, injected, bundle string) {
	t.Helper()
	if got := object.GetAnnotations()["cert-manager.io/inject-ca-from"]; got != injected {
		t.Errorf("%s: cainjector reads %q, want %q", values, got, injected)
	}
	if string(config.CABundle) != bundle {
		t.Errorf("%s: caBundle %q, want %q", values, config.CABundle, bundle)
	}
}

// TestIssuedCertificate holds what cert-manager makes to what the product reads. Its types
// are no part of this module; the fields are those of its API reference, v1.
func TestIssuedCertificate(t *testing.T) {
	t.Parallel()
	for values, issuer := range map[string]map[string]any{
		"{certs: {mode: certManager}}":                                            {"kind": "Issuer", "name": release},
		"{certs: {mode: certManager, issuerRef: {kind: ClusterIssuer, name: a}}}": {"kind": "ClusterIssuer", "name": "a"},
	} {
		found := map[string]*unstructured.Unstructured{}
		for _, object := range render(t, values) {
			if raw, ok := object.(*unstructured.Unstructured); ok {
				found[raw.GetKind()+" "+raw.GetName()] = raw
			}
		}
		certificate := found["Certificate "+release]
		if certificate == nil {
			t.Fatalf("%s: no Certificate in %v", values, found)
		}
		want := map[string]any{
			"secretName": release + "-tls", "issuerRef": issuer,
			"dnsNames":   []any{release + "." + namespace + ".svc", release + "." + namespace + ".svc.cluster.local"},
			"usages":     []any{"digital signature", "key encipherment", "server auth"},
			"privateKey": map[string]any{"rotationPolicy": "Always"},
		}
		if diff := cmp.Diff(want, certificate.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", values, diff)
		}
		if _, own := found["Issuer "+release]; own != (issuer["name"] == release) {
			t.Errorf("%s: an Issuer of the release's own is rendered: %t", values, own)
		}
	}
}
