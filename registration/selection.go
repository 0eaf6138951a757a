package registration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trustLabel is the label of namespaces and pods by which webhook.skipTrusted selects. Who may
// change it of a namespace is in custody.
const trustLabel = "runtimeclass-router.io/trust"

// Selection is whose pods a webhook is asked about, by its namespaceSelector.
type Selection struct {
	// Exempt are the namespaces that are left out by name.
	Exempt []string
	// Trusted are the levels whose namespaces are left out, but for pods that lower themselves.
	Trusted []string
	// Others is true where namespaces are selected by anything else as well.
	Others bool
}

// Select reads a namespaceSelector.
func Select(selector *metav1.LabelSelector) Selection {
	var s Selection
	if selector == nil {
		return s
	}
	s.Others = len(selector.MatchLabels) > 0
	for _, e := range selector.MatchExpressions {
		switch {
		case e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn:
			s.Exempt = append(s.Exempt, e.Values...)
		case e.Key == trustLabel && e.Operator == metav1.LabelSelectorOpNotIn:
			s.Trusted = append(s.Trusted, e.Values...)
		default:
			s.Others = true
		}
	}
	return s
}

// Skips reports whether the webhook is not asked about a pod with those labels, in a
// namespace with those.
func (s *Selection) Skips(name string, namespace, pod map[string]string) bool {
	if slices.Contains(s.Exempt, name) {
		return true
	}
	lowered, ok := pod[trustLabel]
	return slices.Contains(s.Trusted, namespace[trustLabel]) && (!ok || slices.Contains(s.Trusted, lowered))
}
