package cluster

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestBootstrapDeadlock: the webhook is down and its configuration is not. A tenant's pod
// has to wait; the CNI and the webhook's own pods come up. It runs by itself, before the
// parallel tests go on.
func TestBootstrapDeadlock(t *testing.T) {
	if err := shared.Router.Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shared.Router.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}()
	if _, _, err := Create(t.Context(), shared.Client, named(t, "bare"), conformance.Untrusted, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a tenant's pod without the webhook: %v, want it to fail", err)
	}
	for shape, namespace := range map[string]string{"cilium-in-kube-system": "kube-system", "bare": stack.Namespace} {
		outcome, _, err := Create(t.Context(), shared.Client, named(t, shape), namespace, client.DryRunAll)
		if err != nil || outcome.Denied || outcome.Patched {
			t.Errorf("%s in %s: %s %s, %v; want it admitted untouched", shape, namespace, &outcome, outcome.Message, err)
		}
	}
}

// TestWebhookComesBackByItself: its pods need no sandbox, there are two, and a drain
// leaves one.
func TestWebhookComesBackByItself(t *testing.T) {
	t.Parallel()
	rendered, err := shared.Helm(t.Context(), "template", stack.Release, "../../../charts/runtimeclass-router", "--namespace", stack.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	manifests := &catalog.Manifests{}
	if err := manifests.Add("chart", []byte(rendered)); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for i := range manifests.Documents {
		document := &manifests.Documents[i]
		found[document.GVK.Kind] = true
		deployment, ok := document.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		if *deployment.Spec.Replicas < 2 {
			t.Errorf("%d replicas", *deployment.Spec.Replicas)
		}
		if deployment.Spec.Template.Spec.RuntimeClassName != nil {
			t.Error("the webhook's own pods depend on a RuntimeClass")
		}
	}
	if budget := policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget").Kind; !found["Deployment"] || !found[budget] {
		t.Errorf("the chart renders %v, want a Deployment and a %s", found, budget)
	}
}
