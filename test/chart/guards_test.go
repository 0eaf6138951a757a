package chart

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// checkGuards holds the configuration, the ServiceAccount, the right to write it and what the
// bindings read to each other.
func checkGuards(t *testing.T, o backstop.Options, objects []client.Object) {
	t.Helper()
	if err := o.Validate(field.NewPath("guards")).ToAggregate(); err != nil {
		t.Error(err)
	}
	if o.Namespace != namespace {
		t.Errorf("the parameters are written into namespace %s", o.Namespace)
	}
	found := false
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.ServiceAccount:
			found = found || object.Name == o.ServiceAccount
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			checkParamRef(t, o, object.Spec.ParamRef)
		case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			checkParamRef(t, o, object.Spec.ParamRef)
		case *rbacv1.Role:
			want := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{o.ServiceAccount}, Verbs: []string{"update", "patch"}}
			if !slices.ContainsFunc(object.Rules, func(rule rbacv1.PolicyRule) bool { return cmp.Equal(want, rule) }) {
				t.Errorf("no rule %v in %v", want, object.Rules)
			}
		}
	}
	if !found {
		t.Errorf("no ServiceAccount %s is rendered", o.ServiceAccount)
	}
}

func checkParamRef(t *testing.T, o backstop.Options, ref *admissionregistrationv1.ParamRef) {
	t.Helper()
	allow := admissionregistrationv1.AllowAction
	want := &admissionregistrationv1.ParamRef{Name: o.ServiceAccount, Namespace: o.Namespace, ParameterNotFoundAction: &allow}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Errorf("paramRef (-want +got):\n%s", diff)
	}
}

// guards names the admission policies and roles that are rendered, by their suffix.
func guards(t *testing.T, manifests string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, object := range decode(t, manifests) {
		switch object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicy,
			*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.MutatingAdmissionPolicyBinding, *rbacv1.ClusterRole:
			if suffix, ok := strings.CutPrefix(object.GetName(), release+"-"); ok && suffix != "cleanup" { // a hook, and no guard
				found[suffix] = true
			}
		}
	}
	return found
}

func TestGuardsByVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		flags  []string
		want   map[string]bool
	}{
		"1.37":               {"", []string{latest}, map[string]bool{"backstop": true, "custody": true, "grant": true, "fallback": true}},
		"1.35":               {"", nil, map[string]bool{"backstop": true, "custody": true, "grant": true}},
		"1.35, v1beta1":      {"", []string{"--api-versions=admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"}, map[string]bool{"backstop": true, "custody": true, "grant": true}},
		"fallback off":       {"{fallback: {enabled: false}}", []string{latest}, map[string]bool{"backstop": true, "custody": true, "grant": true}},
		"fallback on":        {"{fallback: {enabled: true}}", []string{latest}, map[string]bool{"backstop": true, "custody": true, "grant": true, "fallback": true}},
		"custody off":        {"{custody: {enabled: false}}", []string{latest}, map[string]bool{"backstop": true, "fallback": true}},
		"backstop off":       {"{backstop: {enabled: false}}", []string{latest}, map[string]bool{"custody": true, "grant": true, "fallback": true}},
		"ignored where both": {"{webhook: {failurePolicy: Ignore}}", []string{latest}, map[string]bool{"backstop": true, "custody": true, "grant": true, "fallback": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests, err := templateFor(t, test.values, test.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, guards(t, manifests)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for values, want := range map[string]string{
		"{fallback: {enabled: true}}":          "does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
		"{webhook: {failurePolicy: Ignore}}":   "webhook.failurePolicy: Ignore",
		`{fallback: {enabled: "true"}}`:        "does not serve",
		"{fallback: {enabled: [auto, false]}}": "/fallback/enabled",
	} {
		if _, err := templateFor(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s before 1.36: %v, want %q", values, err, want)
		}
	}
}

// TestGuardsSelectAsTheWebhookDoes: a namespace that is exempt from one is from all.
func TestGuardsSelectAsTheWebhookDoes(t *testing.T) {
	t.Parallel()
	objects := render(t, "{exemptNamespaces: [storage]}")
	want := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks[0].NamespaceSelector
	selectors := map[string]*metav1.LabelSelector{
		"fallback": only[*admissionregistrationv1.MutatingAdmissionPolicyBinding](t, objects).Spec.MatchResources.NamespaceSelector,
	}
	for _, webhook := range only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Webhooks {
		switch webhook.Name {
		case "policies.runtimeclass-router.io": // see TestPolicyConfigMapsAreOfTheRelease
		case "pods-lowered-final.runtimeclass-router.io": // see TestSkipTrusted
		default:
			selectors[webhook.Name] = webhook.NamespaceSelector
		}
	}
	for _, object := range objects {
		if binding, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok && strings.HasSuffix(binding.Name, "-backstop") {
			selectors["backstop"] = binding.Spec.MatchResources.NamespaceSelector
		} else if ok && binding.Spec.MatchResources != nil {
			t.Errorf("%s leaves namespaces out", binding.Name)
		}
	}
	if len(selectors) != 5 {
		t.Errorf("%d selectors, want 5", len(selectors))
	}
	for name, got := range selectors {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-webhook +got):\n%s", name, diff)
		}
	}
}

// TestValidatingWebhook holds the entries to what each may cost.
func TestValidatingWebhook(t *testing.T) {
	t.Parallel()
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	const none, noneOnDryRun = admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun
	want := map[string]struct {
		policy  admissionregistrationv1.FailurePolicyType
		timeout int32
		path    string
		effects admissionregistrationv1.SideEffectClass
	}{
		"pods-final.runtimeclass-router.io":         {fail, 3, "/validate-pod", noneOnDryRun},
		"pods-lowered-final.runtimeclass-router.io": {fail, 3, "/validate-pod", noneOnDryRun},
		"pods-updated.runtimeclass-router.io":       {ignore, 1, "/validate-pod", none},
		"workloads.runtimeclass-router.io":          {ignore, 1, "/validate-workload", none},
		"policies.runtimeclass-router.io":           {ignore, 10, "/validate-policy", none},
	}
	for name, values := range map[string]string{"service": "", "url": variants["url"]} {
		configuration := only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, render(t, values))
		if len(configuration.Webhooks) != len(want) {
			t.Errorf("%s: %d webhooks", name, len(configuration.Webhooks))
		}
		for _, webhook := range configuration.Webhooks {
			if len(webhook.Rules) > 0 {
				t.Errorf("%s: %s is rendered with rules", name, webhook.Name)
			}
			w := want[webhook.Name]
			if *webhook.FailurePolicy != w.policy || *webhook.TimeoutSeconds != w.timeout || *webhook.SideEffects != w.effects {
				t.Errorf("%s: %s: %s, %d s, %s", name, webhook.Name, *webhook.FailurePolicy, *webhook.TimeoutSeconds, *webhook.SideEffects)
			}
			var reached string
			if c := webhook.ClientConfig; c.URL != nil {
				reached = strings.TrimPrefix(*c.URL, "https://127.0.0.1:9443")
			} else {
				reached = *c.Service.Path
			}
			if reached != w.path {
				t.Errorf("%s: %s reaches %s, want %s", name, webhook.Name, reached, w.path)
			}
		}
	}
}

// guarded holds the backstop to parameters as they change, with no webhook that answers.
// Parameters of a kind that the API server watches for policies alone would not be
// followed after an uninstall (kubernetes/kubernetes#130887).
func (c *cluster) guarded(t *testing.T) {
	c.ignoreFailures(t)
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}}
	if err := c.Create(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	account := c.as(t, c.serviceAccount(t))
	write := func(mode string) {
		data, _, err := backstop.Parameters(backstop.State{Config: ptr.To(policies.DefaultConfig()), Catalog: catalog.Build(nil, nil)})
		if err != nil {
			t.Fatal(err)
		}
		data[backstop.KeyDefaultMode] = mode
		if err := account.Apply(t.Context(), corev1apply.ServiceAccount(release+"-guards", namespace).WithAnnotations(data), client.FieldOwner("runtimeclass-router"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	for _, mode := range []string{"enforce", "warn", "enforce"} {
		write(mode)
		await(t, "mode "+mode+" is obeyed", func() error {
			err := c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
			if refused := err != nil && strings.Contains(err.Error(), "-backstop"); refused != (mode == "enforce") {
				return errors.Join(errors.New("not what is wanted"), err)
			}
			return nil
		})
	}
}
