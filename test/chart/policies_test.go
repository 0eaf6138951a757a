package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// TestPolicyConfigMapsAreOfTheRelease: those that carry the label, in the namespace that
// they are loaded from, and no other ConfigMap of the cluster waits for the webhook.
func TestPolicyConfigMapsAreOfTheRelease(t *testing.T) {
	t.Parallel()
	for _, webhook := range only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, render(t, "")).Webhooks {
		if webhook.Name != "policies.runtimeclass-router.io" {
			continue
		}
		if diff := cmp.Diff(&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}, webhook.NamespaceSelector); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(&metav1.LabelSelector{MatchLabels: map[string]string{catalog.LabelPolicy: catalog.PolicyLabelValue}}, webhook.ObjectSelector); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("no webhook for ConfigMaps that carry policy")
}
