package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSelect(t *testing.T) {
	t.Parallel()
	by := func(expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: expressions}
	}
	name := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a", "b"}}
	trust := metav1.LabelSelectorRequirement{Key: "runtimeclass-router.io/trust", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"trusted"}}
	label := metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpExists}
	for what, test := range map[string]struct {
		selector *metav1.LabelSelector
		want     Selection
	}{
		"none":         {nil, Selection{}},
		"empty":        {by(), Selection{}},
		"chart":        {by(name), Selection{Exempt: []string{"a", "b"}}},
		"skipTrusted":  {by(name, trust), Selection{Exempt: []string{"a", "b"}, Trusted: []string{"trusted"}}},
		"a label":      {by(name, label), Selection{Exempt: []string{"a", "b"}, Others: true}},
		"match labels": {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, Selection{Others: true}},
	} {
		if diff := cmp.Diff(test.want, Select(test.selector)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	s := Selection{Exempt: []string{"a"}, Trusted: []string{"trusted"}}
	trust := func(level string) map[string]string { return map[string]string{trustLabel: level} }
	for what, test := range map[string]struct {
		name           string
		namespace, pod map[string]string
		want           bool
	}{
		"exempt":          {"a", nil, nil, true},
		"another":         {"b", nil, nil, false},
		"trusted":         {"b", trust("trusted"), nil, true},
		"trusted, and so": {"b", trust("trusted"), trust("trusted"), true},
		"lowered":         {"b", trust("trusted"), trust("untrusted"), false},
		"lowered to none": {"b", trust("trusted"), trust(""), false},
		"untrusted":       {"b", trust("untrusted"), nil, false},
		"raised":          {"b", trust("untrusted"), trust("trusted"), false},
		"exempt, lowered": {"a", trust("trusted"), trust("untrusted"), true},
		"without a label": {"b", map[string]string{}, trust("trusted"), false},
	} {
		if got := s.Skips(test.name, test.namespace, test.pod); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
