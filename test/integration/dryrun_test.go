package integration

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServerSideDryRunAnswersAndStoresNothing(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	pod := n.dryRun(newPod(class("heavy"))).mustPod(t)
	wantPlacement(t, pod, "gvisor")
	wantPatched(t, pod, "untrusted")
	wantDenied(t, n.dryRun(newPod(hostNetwork)), http.StatusForbidden)
	pods, err := clients.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) > 0 {
		t.Errorf("%d pods are stored", len(pods.Items))
	}
}
