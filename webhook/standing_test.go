package webhook

import (
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestStandingIsTheGuards: a running pod is below the floor if, and only if, the guard
// would not let it be kept, in generated clusters with an exception and a virtual node.
func TestStandingIsTheGuards(t *testing.T) {
	t.Parallel()
	config := threeLevels()
	config.IsolatingVirtualNodes = []policies.VirtualNode{{Name: "v", NodeSelector: newDice(propertySeed).selector()}}
	for _, class := range newDice(propertySeed).cluster().RuntimeClasses { // others have some of their names
		config.Exceptions = append(config.Exceptions, policies.Exception{
			Name: class.Name, Namespaces: []string{"ns"}, RuntimeClassName: class.Name, Owner: "o", Ticket: "t", Reason: "r", Until: "2026-06-30",
		})
	}
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), config); err != nil {
		t.Fatal(err)
	}
	below, excepted := map[bool]int{}, 0
	for n := range uint64(20) {
		d := newDice(propertySeed + n)
		c := d.cluster()
		if err := engine.SetCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		snapshot, err := engine.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			raw := d.pod(c)
			in := policies.Input{Request: policies.Request{Date: pick(d, "2026-06-30", "2026-07-01")}, Namespace: *d.namespace(), Pod: asPod(t, raw)}
			pod, err := decodePod(in.Pod)
			if err != nil {
				t.Fatal(err)
			}
			trust := config.Levels[bound(&config, in.Namespace.Labels, pod.Labels)].Name
			passed, err := guard(snapshot, &in, pod, &policies.Decision{Action: policies.Keep, Trust: trust})
			got, standErr := Stand(snapshot, &in, pod.RuntimeClassName)
			if standErr != nil {
				t.Fatal(standErr)
			}
			if got.Below != (err != nil) || got.Trust != trust || got.Isolation != isolationOf(c.RuntimeClass(pod.RuntimeClassName)) {
				t.Fatalf("seed %d: %+v, and the guard says %v\n%s", propertySeed+n, got, err, raw)
			}
			below[got.Below]++
			if passed.exception != "" {
				excepted++
			}
		}
	}
	if below[true] < 100 || below[false] < 100 || excepted < 10 {
		t.Errorf("the generator hardly gets to all: %v below, %d excepted", below, excepted)
	}
}
