package integration

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// newMeddler registers a webhook of somebody else, by a name that comes after ours. It
// returns when the API server calls it.
func newMeddler(t *testing.T, n *namespace, policy admissionregistrationv1.ReinvocationPolicyType, patch func(*corev1.Pod) []stack.PatchOperation) *stack.Meddler {
	t.Helper()
	m, err := shared.NewMeddler(t.Context(), "zz-meddler-"+n.name, n.name, policy, patch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	poll(t, func(context.Context) (bool, error) {
		n.dryRun(newPod()) // refused or not
		return len(m.Forget()) > 0, nil
	}, func() string { return "the API server does not call the other webhook" })
	return m
}
