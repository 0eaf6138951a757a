package policies

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestExceptionApplies(t *testing.T) {
	t.Parallel()
	e := Exception{Namespaces: []string{"a", "b"}, ServiceAccounts: []string{"s"}, PodLabels: map[string]string{"x": "y"}, Until: "2026-01-31"}
	tests := map[string]struct {
		namespace, account, date string
		labels                   map[string]string
		want                     bool
	}{
		"all":                 {"b", "s", "2026-01-31", map[string]string{"x": "y", "z": ""}, true},
		"another namespace":   {"c", "s", "2026-01-31", map[string]string{"x": "y"}, false},
		"another account":     {"a", "t", "2026-01-31", map[string]string{"x": "y"}, false},
		"another label":       {"a", "s", "2026-01-31", map[string]string{"x": "z"}, false},
		"no label":            {"a", "s", "2026-01-31", nil, false},
		"a day later":         {"a", "s", "2026-02-01", map[string]string{"x": "y"}, false},
		"the year after":      {"a", "s", "2027-01-01", map[string]string{"x": "y"}, false},
		"long before it ends": {"a", "s", "2025-01-01", map[string]string{"x": "y"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := e.Applies(test.namespace, test.account, test.labels, test.date); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestExceptionFaultsAreNamed(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	good := Exception{Name: "n", Namespaces: []string{"a"}, RuntimeClassName: "crun", Owner: "o", Ticket: "t", Reason: "r", Until: "2030-12-31"}
	c.Exceptions = []Exception{good}
	if errs := c.Validate(field.NewPath("router")); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	c.Exceptions = []Exception{good, good, {Namespaces: []string{"team-*"}, Until: "2030-13-01"}, {Until: "2999-12-31"}}
	got := c.Validate(field.NewPath("router")).ToAggregate().Error()
	for _, want := range []string{
		"exceptions[1].name: Duplicate", "exceptions[2].name: Required", "exceptions[2].owner: Required", "exceptions[2].ticket: Required",
		"exceptions[2].reason: Required", "exceptions[2].runtimeClassName: Required", `exceptions[2].namespaces[0]: Invalid value: "team-*"`,
		`exceptions[2].until: Invalid value: "2030-13-01"`, "exceptions[3].namespaces: Required", `exceptions[3].until: Invalid value: "2999-12-31"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q in\n%s", want, got)
		}
	}
}
