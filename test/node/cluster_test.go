//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// TestCluster proves, on one cluster with the chart installed, what is said of the product. The proofs
// about pods run beside each other; those that disturb the cluster do so one after another.
func TestCluster(t *testing.T) {
	c := start(t)
	t.Run("pods", func(t *testing.T) {
		for _, proof := range []proof{
			{"an untrusted pod boots gVisor", (*cluster).untrusted},
			{"a trusted pod runs on crun", (*cluster).trusted},
			{"a trusted pod that asks for runc runs on runc", (*cluster).runc},
			{"the pods of an untrusted Deployment boot gVisor", (*cluster).deployment},
			{"an untrusted Job completes in gVisor", (*cluster).job},
			{"a pod that labels itself trusted boots gVisor", (*cluster).raised},
			{"a pod that asks for crun boots gVisor with its overhead", (*cluster).swapped},
			{"a Kata class without nodes leaves a pod Pending, and says why", (*cluster).kata},
			{"a debug container in a gVisor pod sees gVisor's kernel", (*cluster).debug},
			{"new pods of a relabelled namespace follow the label", (*cluster).relabelled},
		} {
			t.Run(proof.name, func(t *testing.T) {
				t.Parallel()
				proof.prove(c, t)
			})
		}
	})
	for _, proof := range []proof{
		{"bench compares crun, runc and gVisor", (*cluster).bench},
		{"a cordoned sandbox node is waited for", (*cluster).cordoned},
		{"a rolling restart fails no pod", (*cluster).restarted},
		{"without the webhook the fallback boots gVisor and the backstop refuses", (*cluster).absent},
		{"the proofs fail where a node's sandbox is runc", (*cluster).falseHandler},
		{"the proofs fail where class gvisor is runc", (*cluster).falseClass},
		{"the snapshot sees the cluster", (*cluster).visible},
		{"uninstalled, it is in nobody's way", (*cluster).uninstalled},
	} {
		t.Run(proof.name, func(t *testing.T) {
			defer func() { c.Say(proof.name) }()
			proof.prove(c, t)
		})
	}
}

type proof struct {
	name  string
	prove func(*cluster, *testing.T)
}

// start returns when the API server asks the webhook about pods.
func start(t *testing.T) *cluster {
	t.Helper()
	log.SetLogger(logr.Discard()) // controller-runtime complains where nobody listens
	inner, err := node.Start(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{inner}
	t.Cleanup(func() {
		if t.Failed() {
			c.explain(t)
		}
	})
	if err := c.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Say("the chart is installed")
	c.namespace(t, tenants, map[string]string{"trust": "untrusted"})
	c.namespace(t, platform, map[string]string{"trust": "trusted"})
	if err := node.WaitFor(t.Context(), c.asked); err != nil {
		t.Fatalf("wait for the webhook to be asked: %v", err)
	}
	c.Say("the webhook is asked about pods")
	return c
}

// asked returns an error unless the webhook has seen a pod: its revision of the policy is on it.
func (c *cluster) asked(ctx context.Context) error {
	probe := pod(tenants, "probe")
	if _, err := c.create(ctx, probe, client.DryRunAll); err != nil {
		return err
	}
	if probe.Annotations[prefix+"policy-revision"] == "" {
		return errors.New("a pod bears no mark of the webhook")
	}
	return nil
}

// explain logs what a failure can be understood from.
func (c *cluster) explain(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{
		{"get", "nodes,pods", "--all-namespaces", "--output=wide"},
		{"get", "events", "--all-namespaces"},
		{"logs", "--namespace=" + node.Namespace, "deployment/" + node.Release, "--all-pods", "--tail=30"},
	} {
		out, err := c.Kubectl(ctx, args...)
		t.Log(out, err)
	}
	t.Log(c.Logs(15))
}

// routed returns an error unless a pod has that class.
func routed(p *corev1.Pod, want string) error {
	if class(p) != want {
		return fmt.Errorf("pod %s has class %q, want %s", p.Name, class(p), want)
	}
	return nil
}
