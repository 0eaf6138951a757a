package chart

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// canFallBack reports whether that Kubernetes has what the fallback takes. What is expected goes
// by the version, not by what the API server says of itself, which is what is tested.
func canFallBack(release controlplane.Release) bool { return release.AtLeast(36) }

// beyond are values that take a fallback, and the nearest that do not.
var beyond = map[string]string{
	"failurePolicy: Ignore":     "failurePolicy: Fail",
	"fallback: {enabled: true,": "fallback: {enabled: auto,",
}

// within returns the values without what that Kubernetes has not.
func within(release controlplane.Release, values string) string {
	if canFallBack(release) {
		return values
	}
	for from, to := range beyond {
		values = strings.ReplaceAll(values, from, to)
	}
	return values
}

// template runs helm template for this cluster.
func (c *cluster) template(t *testing.T, values string, flags ...string) (string, error) {
	t.Helper()
	serves := latest
	if !canFallBack(c.Release) {
		serves = older
	}
	return templateFor(t, values, append(flags, serves, "--kube-version="+c.Release.Version)...)
}

// ignoreFailures is what failurePolicy Ignore does, where the chart refuses it for want of a
// fallback: the guards that are left are seen only when the API server gets as far as to ask them.
func (c *cluster) ignoreFailures(t *testing.T) {
	t.Helper()
	_, mutating := c.published(t)
	for webhook, configuration := range map[string]client.Object{"pods": mutating, "pods-final": c.validating(t)} {
		patch := []byte(`{"webhooks":[{"name":"` + webhook + `.runtimeclass-router.io","failurePolicy":"Ignore"}]}`)
		if err := c.Patch(t.Context(), configuration, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFallbackByVersion: where MutatingAdmissionPolicy is served before v1, with its feature gate
// off it does nothing. The chart does not take it for a fallback.
func TestFallbackByVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "", func(flags *envtest.Arguments) {
		flags.Set("runtime-config", "admissionregistration.k8s.io/v1beta1=true")
	})
	if out, err := c.Kubectl(t.Context(), "get", "--raw", "/apis/admissionregistration.k8s.io/v1beta1"); err != nil || !strings.Contains(out, `"mutatingadmissionpolicies"`) {
		t.Fatalf("v1beta1 is not served: %s, %v", out, err)
	}
	c.helm(t, "install", "", "--create-namespace")
	manifest, err := c.Helm(t.Context(), "get", "manifest", release, "--namespace", namespace)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := c.Helm(t.Context(), "get", "notes", release, "--namespace", namespace)
	if err != nil {
		t.Fatal(err)
	}
	if canFallBack(c.Release) {
		t.Run("on", func(t *testing.T) {
			only[*admissionregistrationv1.MutatingAdmissionPolicy](t, decode(t, manifest))
			if !strings.Contains(notes, "fallback on") {
				t.Errorf("the notes say:\n%s", notes)
			}
			c.helm(t, "upgrade", "{fallback: {enabled: true}, webhook: {failurePolicy: Ignore}}")
		})
		return
	}
	t.Run("off", func(t *testing.T) {
		if strings.Contains(manifest, "MutatingAdmissionPolicy") {
			t.Error("a MutatingAdmissionPolicy is rendered")
		}
		if !strings.Contains(notes, "fallback off (Kubernetes 1.36 and later have it)") {
			t.Errorf("the notes say:\n%s", notes)
		}
		for _, value := range []string{"fallback.enabled=true", "webhook.failurePolicy=Ignore"} {
			_, err := c.Helm(t.Context(), "upgrade", release, chartPath, "--namespace", namespace, "--set", value)
			if err == nil || !strings.Contains(err.Error(), "Kubernetes 1.36 and later") {
				t.Errorf("upgrade to %s: %v", value, err)
			}
		}
	})
}
