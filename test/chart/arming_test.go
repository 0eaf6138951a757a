package chart

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// failing are values with the failure policy as shipped. No node runs an image here, and no
// Service leads anywhere: an API server that asks the webhook refuses the pod.
const failing = `{webhook: {failurePolicy: Fail}, fallback: {enabled: false}}`

// tenant is the namespace that pods are created in.
const tenant = "tenant"

// TestArming follows a release from an installation whose image never runs to its removal,
// and asks at each step whether pods can be created. The steps build on each other.
func TestArming(t *testing.T) {
	t.Parallel()
	c := newCluster(t, failing)
	for name, labels := range map[string]map[string]string{tenant: {catalog.LabelTrust: "untrusted"}, namespace: nil} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	var r *replica
	// The replica outlives the step that starts it. There is no kubelet: the test is the probe.
	start := func(_ *cluster, step *testing.T) {
		r = c.startReplica(t)
		await(step, "a replica is ready", func() error { return r.ready(step.Context()) })
	}
	stop := func(_ *cluster, t *testing.T) { r.stop(t) }
	for _, step := range []struct {
		name string
		run  func(*cluster, *testing.T)
	}{
		{"install with an image that never runs", func(c *cluster, t *testing.T) { c.helm(t, "install", failing) }},
		{"a failed install blocks nobody", (*cluster).notInForce},
		{"upgrade of what never ran", func(c *cluster, t *testing.T) { c.helm(t, "upgrade", failing) }},
		{"it blocks nobody either", (*cluster).notInForce},
		{"a replica runs", start},
		{"Fail is in force", (*cluster).inForce},
		{"the replica ends", stop},
		{"Fail is still in force", (*cluster).inForce},
		{"upgrade", func(c *cluster, t *testing.T) {
			c.armedThroughout(t, func() { c.helm(t, "upgrade", failing, "--set", "webhook.timeoutSeconds=2,log.level=1") })
		}},
		{"rollback", func(c *cluster, t *testing.T) {
			c.armedThroughout(t, func() {
				if _, err := c.Helm(t.Context(), "rollback", release, "1", "--namespace", namespace); err != nil {
					t.Error(err)
				}
			})
		}},
		// Last: Helm and Argo CD do not share a release.
		{"no diff under Argo CD", (*cluster).quiet},
		{"uninstall deadlock", (*cluster).uninstallDeadlock},
		{"reinstall", func(c *cluster, t *testing.T) { c.helm(t, "install", failing) }},
		{"it blocks nobody again", (*cluster).notInForce},
		{"half of a release", (*cluster).halfBroken},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(c, t) }) {
			return
		}
	}
}

// createPod creates one that the policy refuses, and that nothing refuses before there is a
// policy, as a dry run.
func (c *cluster) createPod(t *testing.T) error {
	t.Helper()
	return c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "pod-"},
		Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, client.DryRunAll)
}

// asked returns an error unless the webhook is asked, and failurePolicy in force.
func (c *cluster) asked(t *testing.T) error {
	t.Helper()
	switch err := c.createPod(t); {
	case err == nil:
		return errors.New("the pod is created and nobody was asked")
	case !strings.Contains(err.Error(), `failed calling webhook "pods.runtimeclass-router.io"`):
		return fmt.Errorf("refused for another reason: %w", err)
	}
	return nil
}

func (c *cluster) notInForce(t *testing.T) {
	// The API server takes a second to learn of a configuration.
	for range 5 {
		if err := c.createPod(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func (c *cluster) inForce(t *testing.T) {
	await(t, "the webhook is asked", func() error { return c.asked(t) })
	_, mutating := c.published(t)
	want := registration.Rules()
	for _, webhook := range mutating.Webhooks {
		if diff := cmp.Diff(want[webhook.Name], webhook.Rules); diff != "" || *webhook.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("%s: %s, rules (-want +got):\n%s", webhook.Name, *webhook.FailurePolicy, diff)
		}
	}
	for _, webhook := range c.validating(t).Webhooks {
		if diff := cmp.Diff(want[webhook.Name], webhook.Rules); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s", webhook.Name, diff)
		}
	}
}

// armedThroughout holds the webhooks to be asked, and what was applied to stay, while
// change runs.
func (c *cluster) armedThroughout(t *testing.T, change func()) {
	t.Helper()
	_, before := c.published(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		change()
	}()
	for n := 0; ; n++ {
		if err := c.asked(t); err != nil {
			t.Errorf("attempt %d: %v", n, err)
		}
		select {
		case <-done:
			t.Logf("%d pods were refused meanwhile", n+1)
			_, after := c.published(t)
			for i := range after.Webhooks {
				if !cmp.Equal(before.Webhooks[i].Rules, after.Webhooks[i].Rules) ||
					!cmp.Equal(before.Webhooks[i].ClientConfig, after.Webhooks[i].ClientConfig) {
					t.Error("rules or caBundle are others than before")
				}
			}
			return
		default:
		}
	}
}

// quiet compares what is rendered with what is stored, as GitOps controllers do: by the
// client's three-way merge and by a server-side apply under another name. Then it applies
// both, which is a sync.
func (c *cluster) quiet(t *testing.T) {
	manifests, err := c.template(t, failing, "--no-hooks")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]string{"client": nil, "server": {"--server-side", "--field-manager=argocd-controller", "--force-conflicts"}}
	for name, flags := range objects {
		apply := append([]string{"apply", "-f", "-"}, flags...)
		if _, err := c.KubectlInput(t.Context(), strings.NewReader(manifests), apply...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		diff := append([]string{"diff", "-f", "-"}, flags...)
		if out, err := c.KubectlInput(t.Context(), strings.NewReader(manifests), diff...); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if err := c.asked(t); err != nil {
			t.Errorf("after a sync by the %s: %v", name, err)
		}
	}
}

// uninstallDeadlock: the webhook does not answer, is asked about every pod, and its
// release is to go, whose hook is a pod.
func (c *cluster) uninstallDeadlock(t *testing.T) {
	if err := c.asked(t); err != nil {
		t.Fatal(err)
	}
	if err := c.helmUninstall(t); err != nil {
		t.Fatal(err)
	}
	await(t, "pods can be created", func() error { return c.createPod(t) })
	c.gone(t)
}

// halfBroken removes a release of which a part is gone, and whose hook cannot run.
func (c *cluster) halfBroken(t *testing.T) {
	for _, object := range c.objects {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, *corev1.Secret:
			if err := c.Delete(t.Context(), object); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := c.Helm(t.Context(), "uninstall", release, "--namespace", namespace, "--no-hooks"); err != nil {
		t.Error(err)
	}
	if err := c.createPod(t); err != nil {
		t.Error(err)
	}
	c.gone(t)
}
