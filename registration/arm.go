package registration

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// Armed reports whether every webhook is asked about something.
func Armed(hooks []Hook) bool {
	for _, hook := range hooks {
		if len(hook.Rules) == 0 {
			return false
		}
	}
	return len(hooks) > 0
}

// Arm gives every webhook its rules. It is called with what Hooks returned, and applies
// nothing where they are there already. A webhook that this version does not know is
// an error, and the others are armed all the same.
func (r *Registration) Arm(ctx context.Context, hooks []Hook) error {
	mutating := apply.MutatingWebhookConfiguration(r.name)
	validating := apply.ValidatingWebhookConfiguration(r.name)
	all := Rules()
	var changed [2]bool
	var unknown []string
	for _, hook := range hooks {
		rules := all[hook.Name]
		if len(rules) == 0 {
			unknown = append(unknown, hook.Name)
			continue
		}
		differs := !equality.Semantic.DeepEqual(hook.Rules, rules)
		var applied []*apply.RuleWithOperationsApplyConfiguration
		for _, rule := range rules {
			applied = append(applied, apply.RuleWithOperations().WithOperations(rule.Operations...).WithAPIGroups(rule.APIGroups...).
				WithAPIVersions(rule.APIVersions...).WithResources(rule.Resources...).WithScope(*rule.Scope))
		}
		if hook.Kind == "mutating" {
			mutating.WithWebhooks(apply.MutatingWebhook().WithName(hook.Name).WithRules(applied...))
			changed[0] = changed[0] || differs
		} else {
			validating.WithWebhooks(apply.ValidatingWebhook().WithName(hook.Name).WithRules(applied...))
			changed[1] = changed[1] || differs
		}
	}
	if err := r.apply(ctx, armer, mutating, validating, changed); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return fmt.Errorf("no rules are known for webhooks %v: the chart is of another version", unknown)
	}
	return nil
}
