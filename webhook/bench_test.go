package webhook

import (
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// BenchmarkRoute decides anew for each pod: decode, evaluate, guard, patch.
func BenchmarkRoute(b *testing.B) {
	router, namespaces := newRouter(b)
	for _, name := range []string{"plain-untrusted", "plain-trusted", "asked-for-and-kept", "host-namespaces", "swap-gvisor-to-kata-fc"} {
		fixture := fixturePods(b)[name]
		in := policies.Input{Namespace: *namespaces[fixture.namespace], Pod: fixture.pod}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := router.Route(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
