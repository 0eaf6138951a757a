package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// burstClients create the pods of a burst.
const burstClients = 32

// burst stores many pods at once, in turn by the hard-coded job and by the product.
func (h *harness) burst(ctx context.Context, r *results.Results) error {
	compared := []*variant{variantOf("job"), variantOf("router"), variantOf("router-all")}
	for _, v := range compared {
		r.Burst = append(r.Burst, &results.Burst{Name: v.name, Title: v.title, Pods: h.Burst})
	}
	for round := range h.Rounds {
		h.say("burst of %d pods: round %d of %d", h.Burst, round+1, h.Rounds)
		for _, i := range rand.Perm(len(compared)) {
			v := compared[i]
			l, err := drive(ctx, h.Burst, burstClients, func(ctx context.Context) (time.Duration, error) { return h.create(ctx, v, stored) })
			if err != nil {
				return fmt.Errorf("burst, %s: %w", v.title, err)
			}
			r.Burst[i].Elapsed = append(r.Burst[i].Elapsed, l.elapsed)
			if err := h.deletePods(ctx, v.namespace()); err != nil {
				return err
			}
		}
	}
	return nil
}

// deletePods deletes all pods of a namespace, and waits until they are gone.
func (h *harness) deletePods(ctx context.Context, namespace string) error {
	if err := h.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := h.Client.List(ctx, &pods, client.InNamespace(namespace), client.Limit(1))
		return len(pods.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until the pods of namespace %s are gone: %w", namespace, err)
	}
	return nil
}
