package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
)

// TestFaultsLast: what is not in force is reported for as long as it is not.
func TestFaultsLast(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	expect := func(when string, configuration, policy, source int) {
		t.Helper()
		want := map[string]int{"configuration": configuration, "policy": policy, "source": source}
		if diff := cmp.Diff(want, r.faults()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	r.configMap(goodHook)
	expect("in order", 0, 0, 0)
	r.configMap(brokenHook)
	r.configMap(brokenHook)
	expect("a broken file", 0, 1, 0)
	r.configMap(goodHook)
	expect("mended", 0, 0, 0)
	r.deliver(r.bundle, sources.Delivery{Err: errors.New("status 500")})
	expect("a server that fails", 0, 0, 1)
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	expect("and answers again", 0, 0, 0)
}
