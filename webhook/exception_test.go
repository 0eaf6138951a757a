package webhook

import (
	"errors"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestExceptions: the shipped policy and the guard agree on who is excepted, and a
// policy that claims more is a policy error.
func TestExceptions(t *testing.T) {
	t.Parallel()
	config := policies.DefaultConfig()
	config.Exceptions = []policies.Exception{{
		Name: "agent", Namespaces: []string{"untrusted"}, RuntimeClassName: "crun",
		Owner: "o", Ticket: "t", Reason: "r", Until: "2026-06-30",
	}}
	route := func(t *testing.T, modules policies.Modules, namespace, date, spec string) (Route, error) {
		engine := policies.NewEngine()
		if err := engine.Load(t.Context(), modules, config); err != nil {
			t.Fatal(err)
		}
		if err := engine.SetCatalog(t.Context(), fixtureCatalog(t)); err != nil {
			t.Fatal(err)
		}
		return (&Router{Engine: engine}).Route(t.Context(), policies.Input{
			Request:   policies.Request{Date: date},
			Namespace: catalog.Namespace{Name: namespace, Labels: map[string]string{catalog.LabelTrust: "untrusted"}},
			Pod:       asPod(t, pod(spec)),
		})
	}
	tests := map[string]struct {
		namespace, date, spec    string
		class, exception, action string
	}{
		"asks for none":        {"untrusted", "2026-06-30", `"hostNetwork": true`, "crun", "agent", "route"},
		"asks for the class":   {"untrusted", "2026-06-30", `"hostPID": true, "runtimeClassName": "crun"`, "crun", "agent", "keep"},
		"asks for another":     {"untrusted", "2026-06-30", `"runtimeClassName": "gvisor"`, "gvisor", "", "keep"},
		"a day too late":       {"untrusted", "2026-07-01", ``, "gvisor", "", "route"},
		"in another namespace": {"others", "2026-06-30", ``, "gvisor", "", "route"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := route(t, policies.Shipped(), test.namespace, test.date, test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got.RuntimeClassName != test.class || got.Exception != test.exception || string(got.Action) != test.action {
				t.Errorf("got %s %s by exception %q, want %+v", got.Action, got.RuntimeClassName, got.Exception, test)
			}
		})
	}
	t.Run("a policy cannot stretch it", func(t *testing.T) {
		t.Parallel()
		_, err := route(t, policies.Modules{"p.rego": "package router\n\ndecision := {\"action\": \"route\", \"trust\": \"untrusted\", \"runtimeClassName\": \"crun\"}\n"},
			"untrusted", "2026-07-01", "")
		var fault *policies.Fault
		if !errors.As(err, &fault) || fault.Kind != policies.Unsafe {
			t.Errorf("got %v", err)
		}
	})
}

// TestIsolatingVirtualNodes: what the configuration lists passes the guard, and what a
// policy claims beyond it does not.
func TestIsolatingVirtualNodes(t *testing.T) {
	t.Parallel()
	config := policies.DefaultConfig()
	config.IsolatingVirtualNodes = []policies.VirtualNode{{Name: "fargate", SchedulerName: "fargate-scheduler"}}
	for name, test := range map[string]struct {
		modules policies.Modules
		spec    string
		action  policies.Action // "" for a policy error
	}{
		"bound":                {policies.Shipped(), `"schedulerName": "fargate-scheduler"`, policies.Exempt},
		"bound and by name":    {policies.Shipped(), `"schedulerName": "fargate-scheduler", "nodeName": "n"`, policies.Deny},
		"claimed by a policy":  {policies.Modules{"p.rego": "package router\n\ndecision := {\"action\": \"exempt\", \"trust\": \"untrusted\"}\n"}, `"schedulerName": "mine"`, ""},
		"bound, other policy":  {policies.Modules{"p.rego": "package router\n\ndecision := {\"action\": \"exempt\", \"trust\": \"untrusted\"}\n"}, `"schedulerName": "fargate-scheduler"`, policies.Exempt},
		"routed, other policy": {policies.Modules{"p.rego": "package router\n\ndecision := {\"action\": \"route\", \"trust\": \"untrusted\", \"runtimeClassName\": \"crun\"}\n"}, `"schedulerName": "fargate-scheduler"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := policies.NewEngine()
			if err := engine.Load(t.Context(), test.modules, config); err != nil {
				t.Fatal(err)
			}
			if err := engine.SetCatalog(t.Context(), fixtureCatalog(t)); err != nil {
				t.Fatal(err)
			}
			in := policies.Input{Namespace: catalog.Namespace{Name: "n", Labels: map[string]string{catalog.LabelTrust: "untrusted"}}, Pod: asPod(t, pod(test.spec))}
			router := &Router{Engine: engine}
			route, err := router.Route(t.Context(), in)
			if test.action == "" {
				var fault *policies.Fault
				if !errors.As(err, &fault) || fault.Kind != policies.Unsafe {
					t.Errorf("got %s, %v", route.Action, err)
				}
				return
			}
			if err != nil || route.Action != test.action || len(route.Patch) > 0 {
				t.Errorf("got %s, %v, %v", route.Action, route.Patch, err)
			}
			judged, err := router.Judge(t.Context(), in)
			if err != nil || judged.Action != test.action {
				t.Errorf("judged %s, %v", judged.Action, err)
			}
		})
	}
}
