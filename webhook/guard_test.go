package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// answering routes over the cluster of the fixtures with a policy that answers every
// pod with one decision.
func answering(t testing.TB, decision string) *Router {
	t.Helper()
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Modules{"p.rego": "package router\n\ndecision := " + decision + "\n"}, threeLevels()); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), fixtureCatalog(t)); err != nil {
		t.Fatal(err)
	}
	return &Router{Engine: engine}
}

// fixtureCatalog is the catalog of the fixtures' cluster.
func fixtureCatalog(t testing.TB) *catalog.Catalog {
	t.Helper()
	cluster, err := catalog.ReadManifests([]string{filepath.Join(fixtures, "cluster.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Catalog()
}

// pod is a Pod with a container, and these fields of its spec.
func pod(spec string) json.RawMessage {
	if spec != "" {
		spec += ", "
	}
	return json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {` + spec + `"containers": [{"name": "c", "image": "i"}]}}`)
}

func TestGuardRefusesWhatNoPolicyMayLoosen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		namespace string // its trust label
		spec      string
		decision  string
		want      string // part of the error, "" for none
	}{
		"trusted for an untrusted pod": {"untrusted", "", `{"action": "keep", "trust": "trusted"}`,
			`trust "trusted" is more than the labels allow: "untrusted"`},
		"one level too much":                  {"untrusted", "", `{"action": "route", "trust": "restricted", "runtimeClassName": "gvisor"}`, "more than the labels allow"},
		"trusted in a denial":                 {"untrusted", "", `{"action": "deny", "trust": "trusted"}`, "more than the labels allow"},
		"trusted in an exemption":             {"untrusted", `"runtimeClassName": "gvisor"`, `{"action": "exempt", "trust": "trusted"}`, "more than the labels allow"},
		"a level that is not configured":      {"trusted", "", `{"action": "keep", "trust": "vip"}`, `trust "vip" is not a configured level`},
		"an unknown level in a denial":        {"trusted", "", `{"action": "deny", "trust": "Trusted"}`, "not a configured level"},
		"untrusted routed to crun":            {"untrusted", "", `{"action": "route", "trust": "untrusted", "runtimeClassName": "crun"}`, "action route would run a pod of trust \"untrusted\" under host-kernel (runtime class \"crun\"), below the floor user-space-kernel"},
		"untrusted routed to the default":     {"untrusted", `"runtimeClassName": "gvisor"`, `{"action": "route", "trust": "untrusted", "runtimeClassName": ""}`, "below the floor"},
		"untrusted routed to nvidia":          {"untrusted", "", `{"action": "route", "trust": "untrusted", "runtimeClassName": "nvidia"}`, "below the floor"},
		"untrusted routed to a disguise":      {"untrusted", "", `{"action": "route", "trust": "untrusted", "runtimeClassName": "gvisor-like"}`, "below the floor"},
		"untrusted exempt":                    {"untrusted", "", `{"action": "exempt", "trust": "untrusted"}`, "action exempt would run"},
		"untrusted exempt under crun":         {"untrusted", `"runtimeClassName": "crun"`, `{"action": "exempt", "trust": "untrusted"}`, "below the floor"},
		"untrusted kept without a class":      {"untrusted", "", `{"action": "keep", "trust": "untrusted"}`, "action keep would run"},
		"untrusted kept under crun":           {"untrusted", `"runtimeClassName": "crun"`, `{"action": "keep", "trust": "untrusted"}`, "below the floor"},
		"untrusted kept under an unknown one": {"untrusted", `"runtimeClassName": "nope"`, `{"action": "keep", "trust": "untrusted"}`, "below the floor"},
		"routed to a class that is not there": {"trusted", "", `{"action": "route", "trust": "trusted", "runtimeClassName": "nope"}`, `runtime class "nope" does not exist`},
		"keep that names another class":       {"untrusted", `"runtimeClassName": "crun"`, `{"action": "keep", "trust": "untrusted", "runtimeClassName": "gvisor"}`, `action keep names runtime class "gvisor" and the pod has "crun"`},
		"keep that names a class for none":    {"untrusted", "", `{"action": "keep", "trust": "untrusted", "runtimeClassName": "gvisor"}`, `the pod has ""`},
		"exempt that names another class":     {"untrusted", `"runtimeClassName": "crun"`, `{"action": "exempt", "trust": "untrusted", "runtimeClassName": "gvisor"}`, "action exempt names"},
		"a class that contradicts the pod":    {"untrusted", `"nodeSelector": {"example.com/pool": "mine"}`, `{"action": "route", "trust": "untrusted", "runtimeClassName": "gvisor"}`, `contradicts the pod's "mine"`},
		"placement that contradicts the pod":  {"trusted", `"nodeSelector": {"zone": "a"}`, `{"action": "route", "trust": "trusted", "runtimeClassName": "nvidia", "nodeSelector": {"zone": "b"}}`, `node selector zone=b contradicts the pod's "a"`},
		"placement that contradicts a class":  {"trusted", "", `{"action": "route", "trust": "trusted", "runtimeClassName": "gvisor", "nodeSelector": {"example.com/pool": "x"}}`, "contradicts"},
		"lower trust below its own floor":     {"trusted", "", `{"action": "keep", "trust": "untrusted"}`, "below the floor"},

		"lower trust with its floor":        {"trusted", "", `{"action": "route", "trust": "untrusted", "runtimeClassName": "gvisor"}`, ""},
		"lower trust in a denial":           {"trusted", "", `{"action": "deny", "trust": "restricted"}`, ""},
		"the bound itself":                  {"restricted", "", `{"action": "route", "trust": "restricted", "runtimeClassName": "kata-fc"}`, ""},
		"trusted kept under an unknown one": {"trusted", `"runtimeClassName": "nope"`, `{"action": "keep", "trust": "trusted"}`, ""},
		"trusted routed to the default":     {"trusted", `"runtimeClassName": "gvisor"`, `{"action": "route", "trust": "trusted", "runtimeClassName": ""}`, ""},
		"untrusted kept in a sandbox":       {"untrusted", `"runtimeClassName": "gvisor"`, `{"action": "keep", "trust": "untrusted"}`, ""},
		"keep that repeats the pod's class": {"untrusted", `"runtimeClassName": "gvisor"`, `{"action": "keep", "trust": "untrusted", "runtimeClassName": "gvisor"}`, ""},
		"untrusted exempt in a sandbox":     {"untrusted", `"runtimeClassName": "kata-fc"`, `{"action": "exempt", "trust": "untrusted"}`, ""},
		"deny may name what it likes":       {"untrusted", "", `{"action": "deny", "trust": "untrusted", "runtimeClassName": "nope"}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := policies.Input{Namespace: catalog.Namespace{Name: "ns", Labels: labels(test.namespace)}, Pod: asPod(t, pod(test.spec))}
			_, err := answering(t, test.decision).Route(t.Context(), in)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var fault *policies.Fault
			if !errors.As(err, &fault) || fault.Kind != policies.Unsafe || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an unsafe decision: %s", err, test.want)
			}
		})
	}
}

// TestAnErrorLeavesNothingButTheMode is what [Router.Route] promises, wherever the
// error comes from.
func TestAnErrorLeavesNothingButTheMode(t *testing.T) {
	t.Parallel()
	decision := `{"action": "route", "trust": "untrusted", "runtimeClassName": "gvisor"}`
	for name, spec := range map[string]string{
		"found by the placement":   `"nodeSelector": {"example.com/pool": "mine"}`,
		"found before the policy":  `"nodeSelector": 7`,
		"found in the tolerations": `"tolerations": {}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			router := answering(t, decision)
			snapshot, err := router.Engine.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			route, err := router.Route(t.Context(), policies.Input{Namespace: catalog.Namespace{Labels: labels("untrusted")}, Pod: asPod(t, pod(spec))})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(Route{Mode: policies.Enforce, PolicyRevision: snapshot.Revision(), CatalogRevision: snapshot.Catalog().Revision()}, route); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGuardReadsThePodsOwnLabel(t *testing.T) {
	t.Parallel()
	router := answering(t, `{"action": "keep", "trust": "trusted"}`)
	lowered := json.RawMessage(strings.Replace(string(pod("")), `"name": "p"`, `"labels": {"runtimeclass-router.io/trust": "untrusted"}`, 1))
	in := policies.Input{Namespace: catalog.Namespace{Labels: labels("trusted")}, Pod: asPod(t, lowered)}
	if _, err := router.Route(t.Context(), in); err == nil || !strings.Contains(err.Error(), "more than the labels allow") {
		t.Errorf("got %v", err)
	}
}

// swap is a context that changes the world when somebody waits for its end: after the
// decision's snapshot was taken and before the patch is made.
type swap struct {
	context.Context
	once *sync.Once
	do   func()
}

func (s swap) Done() <-chan struct{} {
	s.once.Do(s.do)
	return s.Context.Done()
}

func TestAClassThatIsDeletedMeanwhileIsRetryable(t *testing.T) {
	t.Parallel()
	router, namespaces := newRouter(t)
	ctx := swap{t.Context(), &sync.Once{}, func() {
		if err := router.Engine.SetCatalog(context.Background(), catalog.Build(nil, nil)); err != nil {
			t.Error(err)
		}
	}}
	route, err := router.Route(ctx, policies.Input{Namespace: *namespaces["untrusted"], Pod: asPod(t, pod(""))})
	if !errors.Is(err, ErrClassGone) || !strings.Contains(err.Error(), "gvisor was deleted") || !strings.Contains(err.Error(), "create the pod again") {
		t.Errorf("got %+v, %v, want ErrClassGone", route, err)
	}
	var fault *policies.Fault
	if errors.As(err, &fault) {
		t.Error("the policy is blamed for it")
	}
	if len(route.Patch) > 0 {
		t.Errorf("patch %v", route.Patch)
	}
}

func TestAClassThatOthersUseMayGo(t *testing.T) {
	t.Parallel()
	router, _ := newRouter(t)
	before, err := router.Engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	gvisor := before.Catalog().RuntimeClass("gvisor")
	if err := router.Engine.SetCatalog(t.Context(), catalog.Build(nil, nil)); err != nil {
		t.Fatal(err)
	}
	for action, gone := range map[policies.Action]bool{policies.Route: true, policies.Keep: false, policies.Exempt: false, policies.Deny: false} {
		if err := router.stillThere(gvisor, &policies.Decision{Action: action}); errors.Is(err, ErrClassGone) != gone {
			t.Errorf("action %s: %v", action, err)
		}
	}
	if err := router.stillThere(nil, &policies.Decision{Action: policies.Route}); err != nil {
		t.Errorf("the node's default: %v", err)
	}
}

func TestRouteWithoutAPolicyIsAnError(t *testing.T) {
	t.Parallel()
	router := &Router{Engine: policies.NewEngine()}
	route, err := router.Route(t.Context(), policies.Input{Pod: asPod(t, pod(""))})
	if !errors.Is(err, policies.ErrNotLoaded) || route.Mode != "" {
		t.Errorf("got %+v, %v", route, err)
	}
}
