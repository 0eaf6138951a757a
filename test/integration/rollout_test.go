package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// The API server, which keeps its connections, is led to the replacement.
func TestReplacementUnderLoadFailsNoPod(t *testing.T) {
	t.Parallel()
	const creators = 8
	n := untrusted(t)
	old, replacement := startRouter(t, "rollout-old"), startRouter(t, "rollout-new")
	service, err := shared.NewService(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	service.Add(old)
	ready := func(n int) {
		t.Helper()
		if err := service.WaitReady(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	ready(1)
	// Beside the stack's own webhook, and before it.
	remove, err := shared.CallForPods(t.Context(), "aa-rollout-"+n.name, n.name, "https://"+service.Address()+webhook.MutatePodPath, shared.CABundle(), ifNeeded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	poll(t, func(context.Context) (bool, error) {
		n.dryRun(newPod())
		return decisions(t, old) > 0, nil
	}, func() string { return "the API server does not call the webhook" })

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var created atomic.Int64
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // also after a failure: the load ends with t.Context
	for range creators {
		running.Go(func() {
			for ctx.Err() == nil {
				// Not ctx: a call that is in flight when it ends counts as well.
				pod, err := clients.CoreV1().Pods(n.name).Create(t.Context(), newPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if t.Context().Err() != nil {
					return
				}
				if err != nil || classOf(pod) != "gvisor" {
					t.Errorf("create pod: class %q, error %v", classOf(pod), err)
				}
				created.Add(1)
			}
		})
	}
	more := func(by int64) {
		t.Helper()
		want := created.Load() + by
		poll(t, func(context.Context) (bool, error) { return created.Load() >= want, nil },
			func() string { return fmt.Sprintf("%d pods, want %d", created.Load(), want) })
	}
	more(5 * creators)
	service.Add(replacement)
	ready(2)
	before := decisions(t, old)
	if err := service.Delete(old); err != nil {
		t.Fatal(err)
	}
	if err := old.Wait(); err != nil {
		t.Errorf("the process ended with %v; its log:\n%s", err, logOf(t, old))
	}
	more(5 * creators)
	stop()
	running.Wait()
	t.Logf("%d pods; %v decisions of the old process before it was told to end, %v of the new one", created.Load(), before, decisions(t, replacement))
	if before == 0 || decisions(t, replacement) == 0 {
		t.Error("the load did not reach both processes")
	}
}

func decisions(t *testing.T, router *stack.Router) float64 {
	t.Helper()
	sum := 0.0
	for series, value := range seriesOf(t, router) {
		if strings.HasPrefix(series, "runtimeclass_router_decisions_total{") {
			sum += value
		}
	}
	return sum
}

// logOf is the end of what a router wrote.
func logOf(t *testing.T, router *stack.Router) string {
	t.Helper()
	raw, err := os.ReadFile(router.Log)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-3000):])
}
