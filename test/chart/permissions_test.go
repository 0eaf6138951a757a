package chart

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// serviceAccount returns a kubeconfig of the chart's ServiceAccount.
func (c *cluster) serviceAccount(t *testing.T) string {
	t.Helper()
	name := only[*appsv1.Deployment](t, c.objects).Spec.Template.Spec.ServiceAccountName
	kubeconfig, err := c.AddUserKubeconfig("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// permissions holds what the ServiceAccount may do to what it needs. That it may do
// enough for its certificates is shown where they are made, with the same account.
func (c *cluster) permissions(t *testing.T) {
	ctx := t.Context()
	account := c.as(t, c.serviceAccount(t))
	for name, list := range map[string]client.ObjectList{
		"runtime classes": &nodev1.RuntimeClassList{},
		"nodes":           &corev1.NodeList{},
		"namespaces":      &corev1.NamespaceList{},
	} {
		if err := account.List(ctx, list); err != nil {
			t.Errorf("list %s: %v", name, err)
		}
	}
	secret, configuration := c.published(t)
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "others"}}
	if err := c.Create(ctx, others); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Delete(ctx, others); err != nil {
			t.Error(err)
		}
	}()
	foreign := configuration.DeepCopy()
	foreign.Name = "others"
	validating := c.validating(t)
	foreignValidating := validating.DeepCopy()
	foreignValidating.Name = "others"
	for name, err := range map[string]error{
		"get another secret":             account.Get(ctx, client.ObjectKeyFromObject(others), others.DeepCopy()),
		"list secrets":                   account.List(ctx, &corev1.SecretList{}, client.InNamespace(namespace)),
		"list secrets of all namespaces": account.List(ctx, &corev1.SecretList{}),
		"create a secret":                account.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}),
		"delete its secret":              account.Delete(ctx, secret.DeepCopy()),
		"list configurations":            account.List(ctx, &admissionregistrationv1.MutatingWebhookConfigurationList{}),
		"update another configuration":   account.Update(ctx, foreign),
		"delete its configuration":       account.Delete(ctx, configuration.DeepCopy()),
		"create an event": account.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "routed"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "pod"},
		}),
		"list validating configurations":        account.List(ctx, &admissionregistrationv1.ValidatingWebhookConfigurationList{}),
		"update another validating one":         account.Update(ctx, foreignValidating),
		"delete its validating one":             account.Delete(ctx, validating),
		"list policies":                         account.List(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyList{}),
		"list pods":                             account.List(ctx, &corev1.PodList{}, client.InNamespace(namespace)),
		"list config maps of all namespaces":    account.List(ctx, &corev1.ConfigMapList{}),
		"list config maps of another namespace": account.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")),
		"create a config map":                   account.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}),
		"update a policy":                       account.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release + "-policies"}}),
		"delete an event":                       account.Delete(ctx, policyEvent("default")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", name, err)
		}
	}
	c.policyPermissions(t, account)
}

// policyPermissions are to watch policy, and to say on it why it is not in force.
func (c *cluster) policyPermissions(t *testing.T, account client.WithWatch) {
	t.Helper()
	ctx := t.Context()
	labelled := client.MatchingLabels{catalog.LabelPolicy: catalog.PolicyLabelValue}
	var found corev1.ConfigMapList
	if err := account.List(ctx, &found, client.InNamespace(namespace), labelled); err != nil || len(found.Items) != 1 {
		t.Errorf("list policies: %d, %v, want the chart's", len(found.Items), err)
	}
	watch, err := account.Watch(ctx, &found, client.InNamespace(namespace), labelled)
	if err != nil {
		t.Errorf("watch policies: %v", err)
	} else {
		watch.Stop()
	}
	for _, where := range []string{namespace, "default"} { // of policy, and of refused pods
		event := policyEvent(where)
		if err := account.Create(ctx, event); err != nil {
			t.Errorf("create an event in %s: %v", where, err)
		}
		if err := account.Patch(ctx, event, client.RawPatch(types.MergePatchType, []byte(`{"series": {"count": 2, "lastObservedTime": "2030-01-01T00:00:00.000000Z"}}`))); err != nil {
			t.Errorf("patch an event in %s: %v", where, err)
		}
	}
}

// TestEventsOfOtherNamespaces: the right to write them is rendered with what uses it.
func TestEventsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{"": true, variants["told"]: true, variants["untold"]: false} {
		found := false
		for _, object := range render(t, values) {
			if role, ok := object.(*rbacv1.ClusterRole); ok {
				for _, rule := range role.Rules {
					found = found || slices.Contains(rule.Resources, "events")
				}
			}
		}
		if found != want {
			t.Errorf("%s: the right to write Events in all namespaces is rendered: %t", values, found)
		}
	}
}

// policyEvent is one as the product writes them.
func policyEvent(namespace string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy-refused"},
		EventTime:  metav1.NowMicro(), ReportingController: "runtimeclass-router", ReportingInstance: "a",
		Type: corev1.EventTypeWarning, Reason: "PolicyRefused", Action: "LoadPolicy", Note: "custom.rego:1",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: release + "-policies"},
	}
}
