package webhook

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// threeLevels is a scale with a level in the middle.
func threeLevels() policies.Config {
	c := policies.DefaultConfig()
	restricted := c.Levels[1]
	restricted.Name = "restricted"
	c.Levels = []policies.Level{c.Levels[0], restricted, c.Levels[1]}
	return c
}

// labels are a trust label, and none for "absent".
func labels(trust string) map[string]string {
	if trust == "absent" {
		return nil
	}
	return map[string]string{catalog.LabelTrust: trust}
}

func TestBoundIsTheNamespacesLoweredByThePods(t *testing.T) {
	t.Parallel()
	tests := []struct {
		unlabelled, namespace, pod string
		want                       string
	}{
		{"untrusted", "absent", "absent", "untrusted"},
		{"restricted", "absent", "absent", "restricted"},
		{"trusted", "absent", "absent", "trusted"},
		{"untrusted", "trusted", "absent", "trusted"},
		{"untrusted", "restricted", "absent", "restricted"},
		{"trusted", "untrusted", "absent", "untrusted"},
		// A pod lowers itself.
		{"untrusted", "trusted", "restricted", "restricted"},
		{"untrusted", "trusted", "untrusted", "untrusted"},
		{"trusted", "absent", "untrusted", "untrusted"},
		// It does not raise itself.
		{"untrusted", "absent", "trusted", "untrusted"},
		{"untrusted", "untrusted", "trusted", "untrusted"},
		{"untrusted", "restricted", "trusted", "restricted"},
		// What is not known is the least trusted, on either.
		{"trusted", "Trusted", "absent", "untrusted"},
		{"trusted", "", "absent", "untrusted"},
		{"trusted", "trusted", "Trusted", "untrusted"},
		{"trusted", "trusted", "", "untrusted"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("default %s, namespace %q, pod %q", test.unlabelled, test.namespace, test.pod), func(t *testing.T) {
			t.Parallel()
			config := threeLevels()
			config.UnlabelledNamespaces.Trust = test.unlabelled
			if got := config.Levels[bound(&config, labels(test.namespace), labels(test.pod))].Name; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestModeOf(t *testing.T) {
	t.Parallel()
	trusted := map[string]string{catalog.LabelTrust: "trusted"}
	mode := func(m string, more map[string]string) map[string]string {
		l := map[string]string{catalog.LabelMode: m}
		for k, v := range more {
			l[k] = v
		}
		return l
	}
	tests := map[string]struct {
		unlabelled policies.Mode
		namespace  map[string]string
		want       policies.Mode
	}{
		"unlabelled, default warn":                  {policies.Warn, nil, policies.Warn},
		"unlabelled, default audit":                 {policies.Audit, nil, policies.Audit},
		"unlabelled, default enforce":               {policies.Enforce, nil, policies.Enforce},
		"other labels only":                         {policies.Warn, map[string]string{"team": "a"}, policies.Warn},
		"a trust label enforces":                    {policies.Warn, trusted, policies.Enforce},
		"an unknown trust label enforces":           {policies.Warn, map[string]string{catalog.LabelTrust: ""}, policies.Enforce},
		"warn wins over the trust label":            {policies.Enforce, mode("warn", trusted), policies.Warn},
		"audit wins over the trust label":           {policies.Enforce, mode("audit", trusted), policies.Audit},
		"enforce without a trust label":             {policies.Warn, mode("enforce", nil), policies.Enforce},
		"audit without a trust label":               {policies.Enforce, mode("audit", nil), policies.Audit},
		"an invalid value enforces":                 {policies.Warn, mode("off", trusted), policies.Enforce},
		"an invalid value enforces without a label": {policies.Warn, mode("off", nil), policies.Enforce},
		"an empty value enforces":                   {policies.Warn, mode("", nil), policies.Enforce},
		"another spelling is invalid, and enforces": {policies.Warn, mode("Warn", nil), policies.Enforce},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := policies.DefaultConfig()
			config.UnlabelledNamespaces.Mode = test.unlabelled
			if got := modeOf(&config, test.namespace); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestThePolicyAnswersTheBound holds trust.rego and Go's bound together: for every
// combination of labels the shipped policy answers exactly the level that the guard
// allows at most.
func TestThePolicyAnswersTheBound(t *testing.T) {
	t.Parallel()
	for scale, base := range map[string]func() policies.Config{"default": policies.DefaultConfig, "three levels": threeLevels} {
		for _, unlabelled := range base().Levels {
			t.Run(scale+", unlabelled is "+unlabelled.Name, func(t *testing.T) {
				t.Parallel()
				config := base()
				config.UnlabelledNamespaces.Trust = unlabelled.Name
				engine := policies.NewEngine()
				if err := engine.Load(t.Context(), policies.Shipped(), config); err != nil {
					t.Fatal(err)
				}
				if err := engine.SetCatalog(t.Context(), fixtureCatalog(t)); err != nil {
					t.Fatal(err)
				}
				values := []string{"absent", "", "nonsense", "Trusted"}
				for _, level := range config.Levels {
					values = append(values, level.Name)
				}
				for _, namespace := range values {
					for _, pod := range values {
						answersTheBound(t, engine, labels(namespace), labels(pod))
					}
				}
			})
		}
	}
}

func answersTheBound(t *testing.T, engine *policies.Engine, namespace, pod map[string]string) {
	t.Helper()
	snapshot, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"labels": pod}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := policies.Input{Namespace: catalog.Namespace{Name: "ns", Labels: namespace}, Pod: asPod(t, raw)}
	decision, err := snapshot.Decide(t.Context(), in)
	if err != nil {
		t.Fatalf("namespace %q, pod %q: %v", namespace, pod, err)
	}
	config := snapshot.Config()
	if want := config.Levels[bound(config, namespace, pod)].Name; decision.Trust != want {
		t.Errorf("namespace %q, pod %q: the policy answers %s and the bound is %s", namespace, pod, decision.Trust, want)
	}
	if decision.Action != policies.Route {
		t.Errorf("namespace %q, pod %q: %s, though every pod can be routed", namespace, pod, decision.Action)
	}
	// And the guard, which is told the bound by the same labels, lets it through.
	if _, err := (&Router{Engine: engine}).Route(t.Context(), in); err != nil {
		t.Errorf("namespace %q, pod %q: %v", namespace, pod, err)
	}
}
