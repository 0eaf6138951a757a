package guards

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

const chart = "../../charts/runtimeclass-router"

// canFallBack reports whether that Kubernetes has what the fallback takes. What is expected goes
// by the version, not by what the API server says of itself, which is what is tested.
func canFallBack(release controlplane.Release) bool { return release.AtLeast(36) }

// upgrade changes values of the release, by --set.
func upgrade(t *testing.T, set ...string) {
	t.Helper()
	if err := tryUpgrade(set...); err != nil {
		t.Fatal(err)
	}
}

func tryUpgrade(set ...string) error {
	args := []string{"upgrade", stack.Release, chart, "--namespace", stack.Namespace, "--reuse-values"}
	for _, value := range set {
		args = append(args, "--set", value)
	}
	if !canFallBack(shared.Release) {
		args = append(args, "--force-conflicts") // with [ignoreFailures]
	}
	_, err := shared.Helm(context.Background(), args...)
	return err
}

// failing lets no pod be created while the webhook does not answer, and takes the fallback away.
func failing(t *testing.T) {
	t.Helper()
	upgrade(t, "webhook.failurePolicy=Fail", "fallback.enabled=false")
}

// ignoring undoes [failing], and whatever else an upgrade made of the failure policy.
func ignoring(t *testing.T) {
	t.Helper()
	if canFallBack(shared.Release) {
		upgrade(t, "webhook.failurePolicy=Ignore", "fallback.enabled=auto")
		return
	}
	upgrade(t, "webhook.failurePolicy=Fail", "fallback.enabled=auto")
	if err := ignoreFailures(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// ignoreFailures is what the chart refuses where there is no fallback, and what whoever may edit
// the configurations can do all the same. The guards that are left are seen only when the API
// server gets as far as to ask them.
func ignoreFailures(ctx context.Context) error {
	ignored := func(webhook string) []byte {
		return []byte(`{"webhooks":[{"name":"` + webhook + `.runtimeclass-router.io","failurePolicy":"Ignore"}]}`)
	}
	configurations := clients.AdmissionregistrationV1()
	_, mutating := configurations.MutatingWebhookConfigurations().Patch(ctx, stack.Release, types.StrategicMergePatchType, ignored("pods"), metav1.PatchOptions{})
	_, validating := configurations.ValidatingWebhookConfigurations().Patch(ctx, stack.Release, types.StrategicMergePatchType, ignored("pods-final"), metav1.PatchOptions{})
	return errors.Join(mutating, validating)
}
