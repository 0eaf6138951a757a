package webhook

import (
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestAHookLowersTrustAndNeverRaisesIt: the guard holds a pod to the floor of the level
// that it was lowered to, and never sees one above its bound.
func TestAHookLowersTrustAndNeverRaisesIt(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]map[string]string{
		"untrusted": {"trusted": "untrusted", "untrusted": "untrusted"},
		"trusted":   {"trusted": "trusted", "untrusted": "untrusted"},
		"unknown":   {"trusted": "untrusted", "untrusted": "untrusted"},
	} {
		router, namespaces := newRouter(t)
		modules, err := policies.Shipped().Extend(policies.Modules{
			"hook.rego": "package router.custom\n\nlowered." + level + ` contains "a test" if input.pod.spec.hostname == "h"` + "\n",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := router.Engine.Load(t.Context(), modules, policies.DefaultConfig()); err != nil {
			t.Fatal(err)
		}
		for namespace, trust := range want {
			route := mustRoute(t, router, namespaces[namespace], pod(`"hostname": "h"`))
			class := map[string]string{"trusted": "crun", "untrusted": "gvisor"}[trust]
			if route.Trust != trust || route.RuntimeClassName != class {
				t.Errorf("lowered to %s in namespace %s: trust %s, class %s, %q", level, namespace, route.Trust, route.RuntimeClassName, route.Reasons)
			}
			if other := mustRoute(t, router, namespaces[namespace], pod("")); other.Trust != namespace {
				t.Errorf("a pod that no hook lowers, in namespace %s: trust %s", namespace, other.Trust)
			}
		}
	}
}
