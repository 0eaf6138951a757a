package integration

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// The API server would say "conflict: runtimeClass.scheduling.nodeSelector[...]",
// which names no policy and no way out.
func TestSelectorThatContradictsEveryClassIsDeniedInOurWords(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	for name, pod := range map[string]*corev1.Pod{
		"no class":       newPod(selecting("example.com/pool", "crun")),
		"class replaced": newPod(selecting("example.com/pool", "crun"), class("plain")),
	} {
		t.Run(name, func(t *testing.T) {
			message := wantDenied(t, n.in(t).create(pod), http.StatusForbidden)
			for _, side := range []string{"spec.nodeSelector[example.com/pool]", `"crun"`, `"gvisor"`, `"kata-fc"`, `"kata-clh"`, `"kata-qemu"`} {
				if !strings.Contains(message, side) {
					t.Errorf("the denial does not name %s: %s", side, message)
				}
			}
			if strings.Contains(message, "conflict: runtimeClass.scheduling") {
				t.Errorf("the denial is in the API server's words: %s", message)
			}
		})
	}
}

func TestSelectorChoosesAmongTheCandidates(t *testing.T) {
	t.Parallel()
	pod := untrusted(t).admitted(newPod(selecting("example.com/pool", "kata-qemu")))
	wantPlacement(t, pod, "kata-qemu")
	wantPatched(t, pod, "untrusted")
}

// A trusted pod is never denied for placement.
func TestTrustedPodWithASelectorElsewhereIsLeftAlone(t *testing.T) {
	t.Parallel()
	own := selecting("example.com/pool", "gvisor")
	pod := trusted(t).admitted(newPod(own))
	wantPlacement(t, pod, "", own)
	wantUnpatched(t, pod)
}

// wantDenied fails unless the webhook refused the pod with that status, in one line,
// and returns the message.
func wantDenied(t *testing.T, a answer, code int32) string {
	t.Helper()
	if a.err == nil {
		t.Fatalf("the pod was admitted with class %q", classOf(a.pod))
	}
	var status apierrors.APIStatus
	if !errors.As(a.err, &status) {
		t.Fatalf("no status: %v", a.err)
	}
	message := status.Status().Message
	if status.Status().Code != code {
		t.Errorf("status %d, want %d: %s", status.Status().Code, code, message)
	}
	if code == http.StatusForbidden && !stack.Denied(a.err) || !strings.Contains(message, "runtimeclass-router:") {
		t.Errorf("not the webhook's own words: %s", message)
	}
	if strings.Contains(message, "\n") {
		t.Errorf("more than one line: %q", message)
	}
	return message
}
