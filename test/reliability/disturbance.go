package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// disturbance is something that happens to the product while pods are created.
type disturbance struct {
	Name string
	// How says on the page how it is brought about.
	How string
	// excuses are the causes of failures that it may have.
	excuses []cause
	// run returns when it is over, and says what took place.
	run func(h *harness, ctx context.Context) (string, error)
}

// away is how long the API server does not run.
const away = 10 * time.Second

// disturbances in their order. The policy comes after the API server, so that what is
// watched has to be watched anew.
var disturbances = []disturbance{
	{
		Name: "none",
		How:  "To compare with.",
		run:  func(*harness, context.Context) (string, error) { return "nothing happened", nil },
	},
	{
		Name: "leaf rotation",
		How: "`tls.crt` is removed from the Secret, so that the product makes a leaf of the same CA, as it does by itself after 60 days. " +
			"The run waits until each replica serves it.",
		run: (*harness).renewLeaf,
	},
	{
		Name: "CA rotation",
		How: "`ca.key` is removed from the Secret, and the product goes through the steps that it takes by itself after two years: a new CA is trusted " +
			"beside the old one, and half a minute later each replica serves a leaf of it. The last step, which the product takes an hour " +
			"later, is hurried: the run removes the old CA from the Secret's `ca.crt`, and the product from each caBundle.",
		run: (*harness).replaceCA,
	},
	{
		Name: "rolling restart",
		How: "As the chart's Deployment has it (`maxSurge: 1`, `maxUnavailable: 0`): a new replica, and when it is ready an old one is deleted, " +
			"until all are replaced. The run waits until the old processes have ended, each with status 0.",
		run: (*harness).restartAll,
	},
	{
		Name: "kill -9 of a replica",
		How: "SIGKILL to one process. As a kubelet does, the run notices within a second, takes it for not ready, and starts it anew on the same " +
			"address; its endpoint is removed a second after it was noticed.",
		excuses: []cause{broken},
		run:     (*harness).kill,
	},
	{
		Name:    "API server away for 10 s",
		How:     "SIGTERM, and SIGKILL to what has not ended in 3 s; 10 s later it is started on the same etcd and port. Clients try again every 100 ms.",
		excuses: []cause{apiServer},
		run:     (*harness).restartAPIServer,
	},
	{
		Name: "policy reload",
		How: "A ConfigMap with a hook that moves some of the pods to another class is created, then one whose policy does not compile, and then " +
			"both are removed. The run waits each time until every replica says so in its status.",
		run: (*harness).reloadPolicy,
	},
}

// restartAll replaces every replica, as a Deployment does.
func (h *harness) restartAll(ctx context.Context) (string, error) {
	old := h.Service.Routers()
	for i, router := range old {
		if err := h.AddReplica(ctx, "replacement-"+strconv.Itoa(i+1)); err != nil {
			return "", err
		}
		routers := h.Service.Routers()
		h.logs = append(h.logs, routers[len(routers)-1].Log)
		if err := h.Service.WaitReady(ctx, len(old)+1); err != nil {
			return "", err
		}
		if err := h.Service.Delete(router); err != nil {
			return "", err
		}
	}
	for _, router := range old {
		if err := router.Wait(); err != nil {
			return "", fmt.Errorf("a replica that was told to end: %w", err)
		}
	}
	return fmt.Sprintf("%d replicas were replaced, each ended by itself with status 0", len(old)), nil
}

// kill ends a replica at once.
func (h *harness) kill(ctx context.Context) (string, error) {
	before := h.Service.Events()
	if err := h.Service.Routers()[0].Signal(syscall.SIGKILL); err != nil {
		return "", err
	}
	began := time.Now()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return h.Service.Events().Restarted > before.Restarted, nil
	}); err != nil {
		return "", fmt.Errorf("wait until it is started anew: %w", err)
	}
	if err := h.Service.WaitReady(ctx, h.replicas); err != nil {
		return "", err
	}
	after := h.Service.Events()
	return fmt.Sprintf("%d connections broke while an answer was owed, %d were refused at the dead address; led to again after %s",
		after.Cut-before.Cut, after.Refused-before.Refused, time.Since(began).Round(100*time.Millisecond)), nil
}

// restartAPIServer stops it, and starts it again.
func (h *harness) restartAPIServer(ctx context.Context) (string, error) {
	before := h.Service.Events()
	began := time.Now()
	if err := h.StopAPIServer(); err != nil {
		return "", err
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(away):
	}
	if err := h.StartAPIServer(ctx); err != nil {
		return "", err
	}
	ready := time.Since(began)
	if err := h.Service.WaitReady(ctx, h.replicas); err != nil {
		return "", err
	}
	heard, err := h.relabel(ctx)
	return fmt.Sprintf("from SIGTERM until it was ready again %s; probes found a replica not ready %d times; a namespace was made untrusted then: none of its pods got by without a sandbox, and after %s all replicas had heard of it",
		ready.Round(100*time.Millisecond), h.Service.Events().NotReady-before.NotReady, heard.Round(100*time.Millisecond)), err
}

// heard is how many pods in a row have to come out right for every replica to have heard.
const heard = 40

// relabel has a trusted namespace become untrusted, and returns how long it took until its
// pods were sandboxed. Replicas that do not watch again yet go by the old label, and the
// backstop, in the API server, refuses what they let through.
func (h *harness) relabel(ctx context.Context) (time.Duration, error) {
	namespace := &corev1.Namespace{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: relabelled}, namespace); err != nil {
		return 0, err
	}
	namespace.Labels[catalog.LabelTrust] = "untrusted"
	if err := h.Client.Update(ctx, namespace); err != nil {
		return 0, err
	}
	began, row := time.Now(), 0
	var last error
	var took time.Duration
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod, class, _ := newPod(0)
		pod.Namespace = relabelled
		last = h.Client.Create(ctx, pod, client.DryRunAll)
		admitted := last == nil
		if admitted {
			last = check(pod, []string{class})
		}
		if row++; last != nil {
			row, took = 0, time.Since(began)
		}
		if last != nil && admitted && took > time.Second { // the API server itself takes a moment
			return false, fmt.Errorf("%s after its namespace became untrusted a pod was admitted, and not as it should be", took)
		}
		return row == heard, nil
	})
	if err != nil {
		return 0, fmt.Errorf("wait until pods of a relabelled namespace are sandboxed: %w (last: %w)", err, last)
	}
	return took, nil
}
