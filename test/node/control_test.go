//go:build linux

package node_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// falseHandler is the control of the proofs: a class whose handler has a sandbox's name, on a node that
// runs runc under it. The webhook cannot know, and each part of the proof must.
func (c *cluster) falseHandler(t *testing.T) {
	gvisor := c.class(t, "gvisor")
	lie := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor-false"}, Handler: "runsc-false", Scheduling: gvisor.Scheduling}
	c.created(t, lie)
	p := asking(tenants, "false-handler", lie.Name)
	c.eventually(t, p, lie.Name)
	c.created(t, p)
	err := c.BootsGVisor(t.Context(), p)
	for _, want := range []string{"does not say that gVisor started", "is the node's own", "runsc does not list"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the proof for a pod that runc runs says %v, want %q", err, want)
		}
	}
	// And the other way round.
	sandboxed := pod(tenants, "truly-sandboxed")
	c.created(t, sandboxed)
	err = c.BootsOnHost(t.Context(), sandboxed, node.Crun)
	for _, want := range []string{"is not the node's own", "speaks of gVisor", "is on node", "crun does not list"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the proof for a pod in gVisor says %v, want %q", err, want)
		}
	}
	hold(t, c.Client.Delete(t.Context(), lie))
}

// falseClass points class gvisor at runc. The product judges by the handler, so no pod of its is given
// that class, and the proof fails; and it fails for a pod that is given it all the same.
func (c *cluster) falseClass(t *testing.T) {
	truth := c.class(t, "gvisor")
	lie := truth.DeepCopy()
	lie.Handler = "runc"
	c.replaceClass(t, lie)
	defer func() {
		c.replaceClass(t, truth)
		c.eventually(t, asking(tenants, "probe", "gvisor"), "gvisor")
	}()
	// Kata has no node, and is a sandbox.
	c.eventually(t, pod(tenants, "probe"), "kata-qemu")
	c.eventually(t, asking(tenants, "probe", "gvisor"), "kata-qemu")

	const unlabelled = "unlabelled" // in mode warn
	c.namespace(t, unlabelled, nil)
	p := asking(unlabelled, "false-class", "gvisor")
	c.created(t, p)
	hold(t, routed(p, "gvisor"))
	if err := c.BootsGVisor(t.Context(), p); err == nil {
		t.Error("the proof holds where class gvisor is runc")
	} else {
		t.Log("as it should, the proof fails:", err)
	}
}

// eventually waits for the webhook to give a pod like this one that class. It reads classes, nodes and
// labels from a watch.
func (c *cluster) eventually(t *testing.T, p *corev1.Pod, want string) {
	t.Helper()
	if err := node.WaitFor(t.Context(), func(ctx context.Context) error {
		probe := p.DeepCopy()
		if _, err := c.create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		return routed(probe, want)
	}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) class(t *testing.T, name string) *nodev1.RuntimeClass {
	t.Helper()
	class := &nodev1.RuntimeClass{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, class); err != nil {
		t.Fatal(err)
	}
	return class
}

// replaceClass makes a class anew: a handler cannot be changed.
func (c *cluster) replaceClass(t *testing.T, class *nodev1.RuntimeClass) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := c.Client.Delete(ctx, class.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	class = class.DeepCopy()
	class.ResourceVersion = ""
	if err := c.Client.Create(ctx, class); err != nil {
		t.Fatal(err)
	}
}

// visible is the control of the comparison on the host: what is looked at there is there now.
func (c *cluster) visible(t *testing.T) {
	now, err := node.Take(node.Name())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"mounts":    "/run/netns/",
		"links":     node.CrunNode,
		"routes":    node.CrunNode,
		"filters":   "kube-proxy",
		"cgroups":   node.Name() + "-" + node.GVisorNode,
		"processes": "kubelet",
	} {
		if !strings.Contains(strings.Join(now[kind], "\n"), want) {
			t.Errorf("%s do not name %s:\n%s", kind, want, strings.Join(now[kind], "\n"))
		}
	}
}
