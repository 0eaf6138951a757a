package registration

import (
	"slices"

	v1 "k8s.io/api/admissionregistration/v1"
)

// Rules are what each webhook is asked about, by its name in the chart. They belong to
// the code that answers, and follow its version rather than the chart's.
func Rules() map[string][]v1.RuleWithOperations {
	created := []v1.RuleWithOperations{rule("", []string{"pods"}, v1.Create)}
	// The pod as it will be stored, and ephemeral containers of running pods.
	final := append(slices.Clone(created), rule("", []string{"pods/ephemeralcontainers"}, v1.Update))
	return map[string][]v1.RuleWithOperations{
		"pods.runtimeclass-router.io": created,
		// Pods that lower themselves where trusted namespaces are not sent.
		"pods-lowered.runtimeclass-router.io":       created,
		"pods-final.runtimeclass-router.io":         final,
		"pods-lowered-final.runtimeclass-router.io": final,
		"pods-updated.runtimeclass-router.io": {
			rule("", []string{"pods", "pods/resize"}, v1.Update),
		},
		"workloads.runtimeclass-router.io": {
			rule("apps", []string{"deployments", "statefulsets", "daemonsets", "replicasets"}, v1.Create, v1.Update),
			rule("batch", []string{"jobs", "cronjobs"}, v1.Create, v1.Update),
			rule("", []string{"replicationcontrollers"}, v1.Create, v1.Update),
		},
		"policies.runtimeclass-router.io": {
			rule("", []string{"configmaps"}, v1.Create, v1.Update),
		},
	}
}

func rule(group string, resources []string, operations ...v1.OperationType) v1.RuleWithOperations {
	scope := v1.NamespacedScope
	return v1.RuleWithOperations{
		Operations: operations,
		Rule:       v1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources, Scope: &scope},
	}
}
