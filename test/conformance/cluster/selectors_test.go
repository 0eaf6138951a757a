package cluster

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// hook is what a mutating and a validating webhook have in common.
type hook struct {
	name              string
	mutating          bool
	rules             []admissionv1.RuleWithOperations
	namespace, object *metav1.LabelSelector
	conditions        []admissionv1.MatchCondition
	failurePolicy     admissionv1.FailurePolicyType
}

// hooks are the product's webhooks, as the API server has them.
func hooks(t *testing.T) (found []hook) {
	t.Helper()
	ours := client.MatchingLabels{"app.kubernetes.io/instance": stack.Release}
	var mutating admissionv1.MutatingWebhookConfigurationList
	var validating admissionv1.ValidatingWebhookConfigurationList
	for _, list := range []client.ObjectList{&mutating, &validating} {
		if err := shared.Client.List(t.Context(), list, ours); err != nil {
			t.Fatal(err)
		}
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			found = append(found, hook{w.Name, true, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, *w.FailurePolicy})
		}
	}
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			found = append(found, hook{w.Name, false, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, *w.FailurePolicy})
		}
	}
	if !slices.ContainsFunc(found, func(h hook) bool { return h.mutating }) {
		t.Fatal("no mutating webhook is installed")
	}
	return found
}

// covers reports whether the webhook is called for an operation on pods themselves.
func (h *hook) covers(operation admissionv1.OperationType) bool {
	return slices.ContainsFunc(h.rules, func(r admissionv1.RuleWithOperations) bool {
		has := func(list []string, value string) bool {
			return slices.Contains(list, value) || slices.Contains(list, "*")
		}
		return has(r.APIGroups, "") && has(r.Resources, "pods") && (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, admissionv1.OperationAll))
	})
}

// idle reports whether the webhook is there for a value of the chart that is off.
func (h *hook) idle() bool {
	return len(h.conditions) == 1 && h.conditions[0].Expression == "false"
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(set))
}

// TestSilentOffByASelector: what is installed is called for a plain pod with no label at
// all, in every namespace but those that are exempt by name.
func TestSilentOffByASelector(t *testing.T) {
	t.Parallel()
	asked := map[bool]int{} // by whether it mutates
	for _, h := range hooks(t) {
		if !h.covers(admissionv1.Create) || h.idle() {
			continue
		}
		asked[h.mutating]++
		if !matches(t, h.object, nil) || !matches(t, h.object, map[string]string{"app": "a", "sandbox": "false"}) {
			t.Errorf("%s: the object selector %v passes pods over", h.name, h.object)
		}
		if len(h.conditions) > 0 {
			t.Errorf("%s has match conditions, which this test cannot read", h.name)
		}
		for namespace, set := range map[string]map[string]string{
			"untrusted": {catalog.LabelTrust: "untrusted"}, "trusted": {catalog.LabelTrust: "trusted"},
			"unlabelled": {}, "other-labels": {"control-plane": "true", "runtimeclass-router.io/exempt": "true"},
		} {
			set["kubernetes.io/metadata.name"] = namespace
			if !matches(t, h.namespace, set) {
				t.Errorf("%s: the namespace selector passes namespace %s over", h.name, namespace)
			}
		}
	}
	if asked[true] != 1 || asked[false] != 1 {
		t.Errorf("%d mutating and %d validating webhooks are asked about a new pod, want one of each", asked[true], asked[false])
	}
}

// TestOnlyCreationsAreMutated: the API server asks for no patch of an update.
func TestOnlyCreationsAreMutated(t *testing.T) {
	t.Parallel()
	for _, h := range hooks(t) {
		for _, operation := range []admissionv1.OperationType{admissionv1.Update, admissionv1.Delete, admissionv1.Connect} {
			if h.mutating && h.covers(operation) {
				t.Errorf("%s is called for %s", h.name, operation)
			}
		}
	}
}
