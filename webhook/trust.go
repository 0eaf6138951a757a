package webhook

import (
	"slices"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// bound is the position of the most trusted level that a pod may have: that of its
// namespace's label, or of the configured default, lowered by the pod's own label.
// It is worked out here, apart from the policy's own trust.rego, so that a policy
// can answer a lower trust and never a higher one.
func bound(config *policies.Config, namespace, pod map[string]string) int {
	level, labelled := namespace[catalog.LabelTrust]
	if !labelled {
		level = config.UnlabelledNamespaces.Trust
	}
	ceiling := config.Position(level)
	if lowered, ok := pod[catalog.LabelTrust]; ok {
		return max(ceiling, config.Position(lowered))
	}
	return ceiling
}

// modeOf says what is done with a decision in a namespace: its mode label, else
// enforce if it has a trust label, else the configured default. A mode label with
// an invalid value is enforce.
func modeOf(config *policies.Config, namespace map[string]string) policies.Mode {
	if mode, ok := namespace[catalog.LabelMode]; ok {
		if m := policies.Mode(mode); slices.Contains([]policies.Mode{policies.Warn, policies.Audit}, m) {
			return m
		}
		return policies.Enforce
	}
	if _, labelled := namespace[catalog.LabelTrust]; labelled {
		return policies.Enforce
	}
	return config.UnlabelledNamespaces.Mode
}
