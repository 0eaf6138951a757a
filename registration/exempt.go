package registration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exempt are the namespaces that a webhook's or a policy's namespaceSelector leaves out by
// name. Others is true where it
// selects by anything else as well.
func Exempt(selector *metav1.LabelSelector) (names []string, others bool) {
	if selector == nil {
		return nil, false
	}
	others = len(selector.MatchLabels) > 0
	for _, e := range selector.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn {
			names = append(names, e.Values...)
		} else {
			others = true
		}
	}
	slices.Sort(names)
	return slices.Compact(names), others
}
