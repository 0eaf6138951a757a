package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// The chart's admission policies, by what their names end in.
const (
	backstopGuard = "backstop"
	custodyGuard  = "custody"
	fallbackGuard = "fallback"
)

var guardChecks = []Check{
	{"webhooks", []Need{needWebhooks}, "the webhook configurations are there and armed", webhooks},
	{"failure-policy", []Need{needWebhooks, needGuards}, "pods wait for the webhook, or the guards in the API server stand in", failurePolicy},
	{"exempt", []Need{needWebhooks, needNamespaces}, "what the webhook depends on is exempt, and nothing else that is labelled", exempt},
	{backstopGuard, []Need{needGuards}, "the API server refuses what would run below its floor", missingBackstop},
	{custodyGuard, []Need{needGuards}, "only who holds the grant loosens a namespace", missingCustody},
	{fallbackGuard, []Need{needGuards}, "the API server gives a sandbox where the webhook does not answer", missingFallback},
	{"parameters", []Need{needParameters}, "the guards have their parameters", missingParameters},
}

// hook is what both kinds of webhooks have in common.
type hook struct {
	object, name string
	failure      *admissionregistrationv1.FailurePolicyType
	selector     *metav1.LabelSelector
	rules        int
	client       *admissionregistrationv1.WebhookClientConfig
}

// hooks are all webhooks of the release.
func (c *Cluster) hooks() []hook {
	var found []hook
	if c.mutating != nil {
		for i := range c.mutating.Webhooks {
			w := &c.mutating.Webhooks[i]
			found = append(found, hook{"mutatingwebhookconfiguration/" + c.mutating.Name, w.Name, w.FailurePolicy, w.NamespaceSelector, len(w.Rules), &w.ClientConfig})
		}
	}
	if c.validating != nil {
		for i := range c.validating.Webhooks {
			w := &c.validating.Webhooks[i]
			found = append(found, hook{"validatingwebhookconfiguration/" + c.validating.Name, w.Name, w.FailurePolicy, w.NamespaceSelector, len(w.Rules), &w.ClientConfig})
		}
	}
	return found
}

// deciding are the webhooks that pods go through when they are created.
func (c *Cluster) deciding() []hook {
	return slices.DeleteFunc(c.hooks(), func(h hook) bool {
		return !strings.HasPrefix(h.name, "pods.") && !strings.HasPrefix(h.name, "pods-final.")
	})
}

func webhooks(_ context.Context, c *Cluster) ([]Finding, error) {
	if c.mutating == nil && c.validating == nil {
		return []Finding{{
			Severity: Error, Object: "mutatingwebhookconfiguration/" + c.Release.Name,
			Message: "neither webhook configuration is there: the release has another name (--release), is not installed, or was taken out by the break-glass",
			Next:    fmt.Sprintf("helm status %s --namespace %s", c.Release.Name, c.Release.Namespace),
		}}, nil
	}
	var found []Finding
	if c.mutating == nil {
		found = append(found, Finding{Severity: Error, Object: "mutatingwebhookconfiguration/" + c.Release.Name, Message: "is not there: no pod is given a class", Next: c.helm()})
	}
	if c.validating == nil {
		found = append(found, Finding{Severity: Error, Object: "validatingwebhookconfiguration/" + c.Release.Name, Message: "is not there: what another webhook undoes is not seen", Next: c.helm()})
	}
	unarmed := map[string][]string{}
	for _, h := range c.hooks() {
		if h.rules == 0 {
			unarmed[h.object] = append(unarmed[h.object], h.name)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(unarmed)) {
		found = append(found, Finding{
			Severity: Error, Object: object,
			Message: fmt.Sprintf("is not armed, so the API server asks nobody (%s): the log says why", few(unarmed[object])),
			Next:    c.logs(),
		})
	}
	return found, nil
}

// ignores reports whether pods are created though the webhook does not answer.
func (c *Cluster) ignores() bool {
	return slices.ContainsFunc(c.deciding(), func(h hook) bool { return h.failure != nil && *h.failure == admissionregistrationv1.Ignore })
}

func failurePolicy(_ context.Context, c *Cluster) ([]Finding, error) {
	if !c.ignores() {
		return nil, nil
	}
	f := Finding{
		Severity: Note, Object: "mutatingwebhookconfiguration/" + c.Release.Name,
		Message: "failurePolicy is Ignore: while no replica answers, the backstop and the fallback stand in",
	}
	if c.bindings[backstopGuard] == nil || c.policies[backstopGuard] == nil || c.fallback == nil || c.bound == nil {
		f.Severity, f.Next = Error, c.restore("webhook.failurePolicy=Fail")
		f.Message = "failurePolicy is Ignore, and the backstop and the fallback are not both there: while no replica answers, untrusted pods run without a sandbox"
	}
	return []Finding{f}, nil
}

func exempt(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	all := map[string]bool{}
	for _, h := range c.deciding() {
		selection := registration.Select(h.selector)
		for _, name := range selection.Exempt {
			all[name] = true
		}
		for _, name := range []string{metav1.NamespaceSystem, "kube-node-lease", c.Release.Namespace} {
			if !slices.Contains(selection.Exempt, name) {
				found = append(found, Finding{
					Severity: Error, Object: h.object,
					Message: fmt.Sprintf("%s does not leave namespace %s out: what the webhook depends on waits for the webhook", h.name, name), Next: c.restore(),
				})
			}
		}
		if selection.Others {
			found = append(found, Finding{
				Severity: Error, Object: h.object,
				Message: h.name + " selects namespaces by labels other than their name, which whoever may label one can set", Next: c.restore(),
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		ns := c.namespaces[name]
		if ns == nil || ns.Labels[catalog.LabelTrust] == "" || c.config.Position(ns.Labels[catalog.LabelTrust]) == 0 {
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Object: "namespace/" + name,
			Message: fmt.Sprintf("is labelled trust=%s and exempt: nobody looks at its pods, whatever the label says", ns.Labels[catalog.LabelTrust]),
			Next:    fmt.Sprintf("kubectl label namespace %s %s-", name, catalog.LabelTrust),
		})
	}
	return found, nil
}

// judged finds what keeps a ValidatingAdmissionPolicy from refusing anything.
func (c *Cluster) judged(guard string, severity Severity, cost string) []Finding {
	policy, binding := c.policies[guard], c.bindings[guard]
	f := Finding{Severity: severity, Object: "validatingadmissionpolicybinding/" + c.Release.Name + "-" + guard, Next: c.helm(guard + ".enabled=true")}
	switch {
	case policy == nil:
		f.Object, f.Message = "validatingadmissionpolicy/"+c.Release.Name+"-"+guard, "is not there: "+cost
	case binding == nil:
		f.Message = "is not there, so the policy judges nothing: " + cost
	case !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		f.Next = c.restore(guard + ".enabled=true")
		f.Message = fmt.Sprintf("does not deny (validationActions %v): %s", binding.Spec.ValidationActions, cost)
	default:
		return nil
	}
	return []Finding{f}
}

func missingBackstop(_ context.Context, c *Cluster) ([]Finding, error) {
	severity := Warning
	if c.ignores() {
		severity = Error
	}
	return c.judged(backstopGuard, severity, "what another webhook undoes, or the webhook does not see, runs without a sandbox"), nil
}

func missingCustody(_ context.Context, c *Cluster) ([]Finding, error) {
	return c.judged(custodyGuard, Warning, "whoever may label a namespace may trust it"), nil
}

func missingFallback(_ context.Context, c *Cluster) ([]Finding, error) {
	if c.fallback != nil && c.bound != nil {
		return nil, nil
	}
	f := Finding{
		Severity: Note, Object: "mutatingadmissionpolicy/" + c.Release.Name + "-" + fallbackGuard,
		Message: "is not there, or not bound (it takes Kubernetes 1.36): while no replica answers, pods that need a sandbox are refused",
		Next:    c.helm("fallback.enabled=true"),
	}
	if c.ignores() {
		f.Severity = Error
	}
	return []Finding{f}, nil
}

func missingParameters(_ context.Context, c *Cluster) ([]Finding, error) {
	object := fmt.Sprintf("serviceaccount/%s/%s-guards", c.Release.Namespace, c.Release.Name)
	switch {
	case c.parameters == nil:
		return []Finding{{Severity: Error, Object: object, Message: "is not there: the guards judge nothing without their parameters", Next: c.helm()}}, nil
	case c.parameters.Annotations[backstop.KeyLevels] == "":
		return []Finding{{Severity: Error, Object: object, Message: "has no parameters yet, so the guards judge nothing: the log says why", Next: c.logs()}}, nil
	}
	return nil, nil
}
