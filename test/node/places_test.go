//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// kata asks for a class that no node has, and then lets the profile choose that would like it best.
func (c *cluster) kata(t *testing.T) {
	p := asking(tenants, "asks-for-kata", "kata-qemu")
	heard := strings.Join(c.created(t, p), "\n")
	hold(t, routed(p, "kata-qemu"))
	if !strings.Contains(heard, "kata-qemu") {
		t.Errorf("warned of %q, want that kata-qemu has no ready node", heard)
	}
	hold(t, c.unschedulable(t.Context(), p))

	for name, profile := range map[string]string{"general": "general", "syscall-heavy": "syscall-heavy"} {
		other := pod(tenants, "beside-kata-"+name)
		other.Labels = prefixed(map[string]string{"workload-profile": profile})
		c.created(t, other)
		hold(t, routed(other, "gvisor"))
		hold(t, c.BootsGVisor(t.Context(), other))
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Status.Phase != corev1.PodPending {
		t.Errorf("the pod that asks for Kata is %s, want it Pending (%v)", p.Status.Phase, err)
	}
}

// unschedulable waits for the scheduler to have said of a pod that it finds no node.
func (c *cluster) unschedulable(ctx context.Context, p *corev1.Pod) error {
	return node.WaitFor(ctx, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if !slices.ContainsFunc(p.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Reason == corev1.PodReasonUnschedulable && strings.Contains(condition.Message, "0/2 nodes are available")
		}) {
			return fmt.Errorf("pod %s has conditions %+v, want Unschedulable with the number of nodes", p.Name, p.Status.Conditions)
		}
		return nil
	})
}

// cordoned takes the sandbox pool away for a while.
func (c *cluster) cordoned(t *testing.T) {
	c.kubectl(t, "cordon", node.GVisorNode)
	uncordoned := false
	defer func() {
		if !uncordoned {
			c.kubectl(t, "uncordon", node.GVisorNode)
		}
	}()
	var heard []string
	p := pod(tenants, "cordoned")
	// The webhook reads nodes from a watch, and warns when it knows.
	if err := node.WaitFor(t.Context(), func(ctx context.Context) error {
		var err error
		if heard, err = c.create(ctx, pod(tenants, "cordoned"), client.DryRunAll); err == nil && len(heard) == 0 {
			err = errors.New("no warning that the pool is not ready")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.created(t, p)
	hold(t, routed(p, "gvisor"))
	hold(t, c.unschedulable(t.Context(), p))
	c.kubectl(t, "uncordon", node.GVisorNode)
	uncordoned = true
	hold(t, c.BootsGVisor(t.Context(), p))
}
