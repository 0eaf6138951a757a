//go:build linux

package node_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

func (c *cluster) untrusted(t *testing.T) {
	p := pod(tenants, "untrusted")
	c.created(t, p)
	hold(t, routed(p, "gvisor"))
	hold(t, c.BootsGVisor(t.Context(), p))
}

func (c *cluster) trusted(t *testing.T) {
	p := pod(platform, "trusted")
	c.created(t, p)
	hold(t, routed(p, "crun"))
	hold(t, c.BootsOnHost(t.Context(), p, node.Crun))
}

func (c *cluster) runc(t *testing.T) {
	p := asking(platform, "asks-for-runc", "runc")
	c.created(t, p)
	hold(t, routed(p, "runc"))
	hold(t, c.BootsOnHost(t.Context(), p, node.Runc))
}

func (c *cluster) raised(t *testing.T) {
	p := pod(tenants, "raised")
	p.Labels = prefixed(map[string]string{"trust": "trusted"})
	heard := strings.Join(c.created(t, p), "\n")
	if !strings.Contains(heard, "trust") {
		t.Errorf("warned of %q, want why the label does not count", heard)
	}
	hold(t, routed(p, "gvisor"))
	hold(t, c.BootsGVisor(t.Context(), p))
}

func (c *cluster) swapped(t *testing.T) {
	p := asking(tenants, "asks-for-crun", "crun")
	c.created(t, p)
	hold(t, routed(p, "gvisor"))
	gvisor := &nodev1.RuntimeClass{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "gvisor"}, gvisor); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gvisor.Overhead.PodFixed, p.Spec.Overhead); diff != "" {
		t.Errorf("overhead (-of the class +of the pod):\n%s", diff)
	}
	if diff := cmp.Diff(gvisor.Scheduling.NodeSelector, p.Spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-of the class +of the pod):\n%s", diff)
	}
	hold(t, c.BootsGVisor(t.Context(), p))
}

func (c *cluster) deployment(t *testing.T) {
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec()},
		},
	}
	deployment.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c.created(t, deployment)
	c.kubectl(t, "rollout", "status", "--namespace="+tenants, "deployment/web", "--timeout=2m")
	for _, p := range c.labelled(t, tenants, labels, 2) {
		hold(t, routed(&p, "gvisor"))
		hold(t, c.BootsGVisor(t.Context(), &p))
	}
}

func (c *cluster) job(t *testing.T) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenants, Name: "batch"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "batch"}},
			Spec:       spec(),
		}},
	}
	job.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", node.ReportKernel}
	c.created(t, job)
	c.kubectl(t, "wait", "--namespace="+tenants, "--for=condition=Complete", "job/batch", "--timeout=2m")
	p := &c.labelled(t, tenants, map[string]string{"app": "batch"}, 1)[0]
	hold(t, routed(p, "gvisor"))
	log, err := c.Log(t.Context(), p, "main")
	if err != nil {
		t.Fatal(err)
	}
	// Its container is gone from runsc's list.
	if !strings.Contains(log, "Starting gVisor") || p.Spec.NodeName != node.GVisorNode {
		t.Errorf("on node %s it said %q, want gVisor's start on %s", p.Spec.NodeName, log, node.GVisorNode)
	}
}

func (c *cluster) debug(t *testing.T) {
	p := pod(tenants, "debugged")
	c.created(t, p)
	if err := c.Reach(t.Context(), p, corev1.PodRunning); err != nil {
		t.Fatal(err)
	}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", Image: node.BusyBox, ImagePullPolicy: corev1.PullNever,
		Command: []string{"sh", "-c", node.ReportKernel},
	}}}
	if err := c.Client.SubResource("ephemeralcontainers").Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	log, err := c.Log(t.Context(), p, "debugger")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log, "Starting gVisor") {
		t.Errorf("the debug container said %q, want gVisor's start", log)
	}
	hold(t, c.BootsGVisor(t.Context(), p))
}

func (c *cluster) relabelled(t *testing.T) {
	const name = "relabelled"
	c.namespace(t, name, map[string]string{"trust": "trusted"})
	before := pod(name, "before")
	c.created(t, before)
	hold(t, c.BootsOnHost(t.Context(), before, node.Crun))
	c.kubectl(t, "label", "namespace", name, prefix+"trust=untrusted", "--overwrite")
	after := pod(name, "after")
	c.eventually(t, after, "gvisor")
	c.created(t, after)
	hold(t, c.BootsGVisor(t.Context(), after))
	hold(t, c.BootsOnHost(t.Context(), before, node.Crun))

	below := c.belowFloor(t, name)
	if want := []string{before.Name}; !slices.Equal(below, want) {
		t.Errorf("audit lists %q below their floor, want %q", below, want)
	}
}

// belowFloor is the pods of a namespace that the command audit finds below their floor.
func (c *cluster) belowFloor(t *testing.T, namespace string) []string {
	t.Helper()
	command := c.Command(t.Context(), node.Product(), "audit", "--kubeconfig="+c.KubeconfigPath, "--namespace="+namespace, "--output=json")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	var report struct {
		Findings []struct {
			Finding string
			Names   []string
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	var names []string
	for _, f := range report.Findings {
		if f.Finding == "below-floor" {
			names = append(names, f.Names...)
		}
	}
	return names
}
