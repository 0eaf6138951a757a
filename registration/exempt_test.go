package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExempt(t *testing.T) {
	t.Parallel()
	byName := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b", "a", "b"}}
	byLabel := metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpExists}
	for name, test := range map[string]struct {
		selector *metav1.LabelSelector
		names    []string
		others   bool
	}{
		"none":   {nil, nil, false},
		"empty":  {&metav1.LabelSelector{}, nil, false},
		"chart":  {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{byName}}, []string{"a", "b"}, false},
		"wider":  {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{byName, byLabel}}, []string{"a", "b"}, true},
		"labels": {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, nil, true},
	} {
		names, others := Exempt(test.selector)
		if diff := cmp.Diff(test.names, names); diff != "" || others != test.others {
			t.Errorf("%s: others %t (-want +got)\n%s", name, others, diff)
		}
	}
}
