package chart

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// installed are the values that the chart is installed with.
const installed = `{webhook: {failurePolicy: Ignore}, runtimeClasses: {create: true}, policies: {files: {custom.rego: "package router.custom\n"}}}`

// cluster is an API server with the administrator's client, and what is installed.
type cluster struct {
	*controlplane.ControlPlane
	client.Client
	values  string
	objects []client.Object
}

// newCluster starts one, for what those values render there.
func newCluster(t *testing.T, values string, configure ...func(*envtest.Arguments)) *cluster {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		Progress: t.Output(),
		ConfigureAPIServer: func(flags *envtest.Arguments) {
			for _, change := range configure {
				change(flags)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := client.New(cp.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{ControlPlane: cp, Client: admin, values: within(cp.Release, values)}
	// A release consists of these: hooks come and go.
	manifests, err := c.template(t, c.values, "--no-hooks")
	if err != nil {
		t.Fatal(err)
	}
	c.objects = decode(t, manifests)
	return c
}

// TestCluster installs the chart, runs its certificates, upgrades, removes and
// reinstalls it on a real API server. The steps build on each other.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, installed)
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := c.Create(t.Context(), restricted); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		run  func(*cluster, *testing.T)
	}{
		{"every variant is valid", (*cluster).variants},
		{"install", (*cluster).install},
		{"a pod is restricted", (*cluster).restricted},
		{"permissions", (*cluster).permissions},
		{"certificates", (*cluster).certificates},
		{"Argo CD sees no difference", (*cluster).argoCD},
		{"upgrade keeps the certificate", (*cluster).upgrade},
		{"guards read the parameters", (*cluster).guarded},
		{"unbind the guards", (*cluster).unbound},
		{"uninstall", (*cluster).uninstall},
		{"reinstall", (*cluster).install},
		{"guards read the parameters anew", (*cluster).guarded},
		{"uninstall again", (*cluster).uninstall},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(c, t) }) {
			return
		}
	}
}

func (c *cluster) helm(t *testing.T, command, values string, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{command, release, chartPath, "--namespace", namespace, "--values", file}, flags...)
	if _, err := c.Helm(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

// variants asks the API server what types cannot tell: whether values are valid.
func (c *cluster) variants(t *testing.T) {
	for name, values := range variants {
		manifests, err := c.template(t, within(c.Release, values))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, object := range decode(t, manifests) {
			if _, ok := object.(*unstructured.Unstructured); ok {
				continue // a kind that this API server does not serve
			}
			if foreign[object.GetObjectKind().GroupVersionKind().Group] != "" {
				continue // no such kind here
			}
			if namespaced, err := c.IsObjectNamespaced(object); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if namespaced && object.GetNamespace() == "" {
				object.SetNamespace(namespace) // as helm does
			}
			if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s: create %T: %v", name, object, err)
			}
		}
	}
}

func (c *cluster) install(t *testing.T) {
	c.helm(t, "install", c.values)
	for _, object := range c.objects {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), fresh(object)); err != nil {
			t.Errorf("after install: %v", err)
		}
	}
}

func (c *cluster) uninstall(t *testing.T) {
	if err := c.helmUninstall(t); err != nil {
		t.Fatal(err)
	}
	c.gone(t)
}

// gone looks for what the release has left behind.
func (c *cluster) gone(t *testing.T) {
	t.Helper()
	for _, object := range c.objects {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), fresh(object))
		if !apierrors.IsNotFound(err) {
			t.Errorf("after uninstall, %T %s: %v, want not found", object, object.GetName(), err)
		}
	}
	left := &corev1.SecretList{}
	if err := c.List(t.Context(), left, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("%d secrets left in the release's namespace", len(left.Items))
	}
}

// unbound leaves no policy that reads parameters, while these are there still: what the
// API server watched for policies alone it watches no longer, and remembers. It looks once
// a second, and reports nothing that could be waited for.
func (c *cluster) unbound(t *testing.T) {
	for _, object := range c.objects {
		switch object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			if err := c.Delete(t.Context(), object); err != nil {
				t.Error(err)
			}
		}
	}
	time.Sleep(3 * time.Second)
}

// restricted creates a pod from the Deployment's template where Pod Security enforces
// the standard "restricted", as the Deployment's controller would.
func (c *cluster) restricted(t *testing.T) {
	template := only[*appsv1.Deployment](t, c.objects).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = namespace, "webhook"
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// upgrade changes the configuration after the certificate was made.
func (c *cluster) upgrade(t *testing.T) {
	secret, configuration := c.published(t)
	validating := c.validating(t)
	c.parameters(t)
	c.helm(t, "upgrade", c.values+"\n", "--set", "log.level=1")
	upgradedSecret, upgraded := c.published(t)
	if diff := cmp.Diff(secret.Data, upgradedSecret.Data); diff != "" {
		t.Error("the Secret's data changed") // and is not for a log
	}
	if diff := cmp.Diff(configuration.Webhooks, upgraded.Webhooks); diff != "" {
		t.Errorf("webhooks (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(validating.Webhooks, c.validating(t).Webhooks); diff != "" {
		t.Errorf("validating webhooks (-before +after):\n%s", diff)
	}
	guards := &corev1.ServiceAccount{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-guards"}, guards); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a", guards.Annotations[backstop.KeyLevels]); diff != "" {
		t.Errorf("parameters of the guards (-before +after):\n%s", diff)
	}
	before := only[*appsv1.Deployment](t, c.objects)
	after := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(before), after); err != nil {
		t.Fatal(err)
	}
	const checksum = "checksum/config"
	if before.Spec.Template.Annotations[checksum] == after.Spec.Template.Annotations[checksum] {
		t.Error("the upgrade does not replace the pods")
	}
}

// published returns the Secret and the webhook configuration as they are stored.
func (c *cluster) published(t *testing.T) (*corev1.Secret, *admissionregistrationv1.MutatingWebhookConfiguration) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(only[*corev1.Secret](t, c.objects)), secret); err != nil {
		t.Fatal(err)
	}
	configuration := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, c.objects).DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		t.Fatal(err)
	}
	return secret, configuration
}

// validating returns the other webhook configuration as it is stored.
func (c *cluster) validating(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	configuration := only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, c.objects).DeepCopy()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		t.Fatal(err)
	}
	return configuration
}

// parameters writes some as the product does, with its account and no other right.
func (c *cluster) parameters(t *testing.T) {
	t.Helper()
	guards := corev1apply.ServiceAccount(release+"-guards", namespace).WithAnnotations(map[string]string{backstop.KeyLevels: "a"})
	account := c.as(t, c.serviceAccount(t))
	if err := account.Apply(t.Context(), guards, client.FieldOwner("runtimeclass-router"), client.ForceOwnership); err != nil {
		t.Error(err)
	}
	if err := account.Apply(t.Context(), corev1apply.ServiceAccount("others", namespace), client.FieldOwner("runtimeclass-router"), client.ForceOwnership); !apierrors.IsForbidden(err) {
		t.Errorf("apply another service account: %v, want forbidden", err)
	}
}

// fresh returns an empty object of the same type.
func fresh(object client.Object) client.Object {
	empty, err := scheme.Scheme.New(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		panic(err) // it was decoded with this scheme
	}
	return empty.(client.Object)
}
