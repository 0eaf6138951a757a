//go:build linux

package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// restarted creates pods all the while that every replica of the webhook is replaced: many that are not
// stored, and some that boot.
func (c *cluster) restarted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	restarted := make(chan error, 1)
	go func() {
		defer stop()
		_, err := c.Kubectl(t.Context(), "rollout", "restart", "--namespace="+node.Namespace, "deployment/"+node.Release)
		if err == nil {
			_, err = c.Kubectl(t.Context(), "rollout", "status", "--namespace="+node.Namespace, "deployment/"+node.Release, "--timeout=2m")
		}
		if err == nil {
			err = node.WaitFor(t.Context(), c.replaced) // the old ones still drain
		}
		restarted <- err
	}()
	var stored []*corev1.Pod
	asked := 0
	for ctx.Err() == nil {
		p := pod(tenants, fmt.Sprint("restart-", asked))
		var options []client.CreateOption
		if asked%50 != 0 {
			options = append(options, client.DryRunAll)
		}
		_, err := c.create(t.Context(), p, options...)
		if err == nil {
			err = routed(p, "gvisor")
		}
		if err != nil {
			t.Errorf("pod %d: %v", asked, err)
		}
		if len(options) == 0 && err == nil {
			stored = append(stored, p)
		}
		asked++
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	hold(t, <-restarted)
	for _, p := range stored {
		hold(t, c.BootsGVisor(t.Context(), p))
		hold(t, c.Client.Delete(t.Context(), p))
	}
	if t.Logf("%d pods were created, %d of them stored", asked, len(stored)); len(stored) < 2 {
		t.Error("too few pods to show anything")
	}
}

// replaced returns an error while a pod of the webhook is being ended.
func (c *cluster) replaced(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := c.Client.List(ctx, pods, client.InNamespace(node.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is being ended", pods.Items[i].Name)
		}
	}
	return nil
}

// absent takes every replica away, under failurePolicy Ignore.
func (c *cluster) absent(t *testing.T) {
	if err := c.Install(t.Context(), "webhook.failurePolicy=Ignore"); err != nil {
		t.Fatal(err)
	}
	scale := func(replicas string) {
		t.Helper()
		c.kubectl(t, "scale", "--namespace="+node.Namespace, "deployment/"+node.Release, "--replicas="+replicas)
	}
	scale("0")
	gone := func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := c.Client.List(ctx, pods, client.InNamespace(node.Namespace)); err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d pods of the webhook are left", len(pods.Items))
	}
	if err := node.WaitFor(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := c.asked(t.Context()); err == nil {
		t.Error("a pod bears the mark of a webhook that is not there")
	}

	p := pod(tenants, "fallback")
	c.created(t, p)
	hold(t, routed(p, "gvisor"))
	if p.Annotations[prefix+"fallback"] == "" {
		t.Errorf("the pod has annotations %v, want the fallback's", p.Annotations)
	}
	hold(t, c.BootsGVisor(t.Context(), p))

	trusted := asking(platform, "without-webhook", "crun")
	c.created(t, trusted)
	hold(t, c.BootsOnHost(t.Context(), trusted, node.Crun))

	onHost := pod(tenants, "host-network")
	onHost.Spec.HostNetwork = true
	files := pod(tenants, "host-files")
	files.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	for _, refused := range []*corev1.Pod{asking(tenants, "crun-without-webhook", "crun"), onHost, files} {
		_, err := c.create(t.Context(), refused)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), node.Release+"-backstop") {
			t.Errorf("pod %s: %v, want the backstop's refusal", refused.Name, err)
		}
	}

	scale("2")
	if err := c.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitFor(t.Context(), c.asked); err != nil {
		t.Error(err)
	}
}

// uninstalled removes the release, and its guards with it.
func (c *cluster) uninstalled(t *testing.T) {
	if _, err := c.Helm(t.Context(), "uninstall", node.Release, "--namespace="+node.Namespace, "--wait", "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
		"mutatingadmissionpolicies", "validatingadmissionpolicies", "runtimeclasses",
	} {
		if left := c.kubectl(t, "get", kind, "--output=name"); left != "" {
			t.Errorf("left: %s", left)
		}
	}
	p := pod(tenants, "uninstalled")
	c.created(t, p)
	if class(p) != "" {
		t.Errorf("a pod has class %q from nobody", class(p))
	}
}

// kubectl is the administrator's, and an error the test's end.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// labelled are the pods of a namespace with those labels, of which there must be so many.
func (c *cluster) labelled(t *testing.T, namespace string, labels map[string]string, want int) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.Client.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != want {
		t.Fatalf("there are %d pods labelled %v, want %d", len(pods.Items), labels, want)
	}
	return pods.Items
}
