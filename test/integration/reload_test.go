package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// A changed configuration is in force without a restart; a faulty one is not, and the
// last good one decides.
func TestConfigurationIsReloaded(t *testing.T) {
	t.Parallel()
	router, err := shared.NewRouter(t.Context(), "reload")
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Stop(); err != nil {
			t.Error(err)
		}
	})
	n := newNamespace(t, "trust=untrusted")
	class := func() string {
		pod := newPod(labelled("runtimeclass-router.io/workload-profile=reloaded"))
		answer, err := post(t.Context(), router.HTTP, router.URL, reviewOf(t, n, pod, "reload"))
		if err != nil {
			t.Fatal(err)
		}
		got := patched(t, pod, answer.response)
		if got.Spec.RuntimeClassName == nil {
			return ""
		}
		return *got.Spec.RuntimeClassName
	}
	before := class()
	if before != "gvisor" {
		t.Fatalf("an unknown profile got %q", before)
	}
	configure := func(candidates string) {
		t.Helper()
		if err := router.Configure(func(config map[string]any) {
			for _, level := range config["router"].(map[string]any)["levels"].([]any) {
				level := level.(map[string]any)
				if level["name"] == "untrusted" {
					level["candidates"].(map[string]any)["reloaded"] = []any{candidates}
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	configure("kata-qemu")
	eventually(t, router, "success")
	if got := class(); got != "kata-qemu" {
		t.Errorf("after the change a pod got %q", got)
	}
	if err := router.Configure(func(config map[string]any) { config["router"].(map[string]any)["levls"] = []any{} }); err != nil {
		t.Fatal(err)
	}
	eventually(t, router, "error")
	if got := class(); got != "kata-qemu" {
		t.Errorf("after a faulty change a pod got %q", got)
	}
}

// eventually waits until the router has counted a reload with an outcome.
func eventually(t *testing.T, router *stack.Router, outcome string) {
	t.Helper()
	series := fmt.Sprintf("runtimeclass_router_config_reloads_total{outcome=%q}", outcome)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if seriesOf(t, router)[series] > 0 {
			return
		}
	}
	t.Fatalf("no reload with outcome %s in a minute", outcome)
}

// `route` reads a live cluster's classes, nodes and namespaces.
func TestRouteAsksALiveCluster(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "trust=untrusted")
	command := shared.Command(t.Context(), "route", "-f", "-", "--kubeconfig", shared.KubeconfigPath, "-o", "json")
	command.Stdin = strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: " + n.name + "}\nspec: {containers: [{name: c, image: i}]}\n")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"trust": "untrusted"`, `"mode": "enforce"`, `"runtimeClassName": "gvisor"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %s:\n%s", want, out)
		}
	}
}
