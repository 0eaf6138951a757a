package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/catalog/informers"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// TestServeBeforeSync: whatever is missing at the start, the answer is a refusal that
// says to try again, or a denial; never a verdict made up of defaults.
func TestServeBeforeSync(t *testing.T) {
	t.Parallel()
	ready := newBench(t)
	unsynced, err := informers.New(&rest.Config{Host: "https://127.0.0.1:1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit func(*webhook.Options)
		code int32
		want string
	}{
		"no policy":     {func(o *webhook.Options) { o.Router = &webhook.Router{Engine: policies.NewEngine()} }, http.StatusInternalServerError, "no policy is loaded yet"},
		"no namespaces": {func(o *webhook.Options) { o.Namespaces = unsynced }, http.StatusInternalServerError, "not been read yet"},
		"no classes":    {func(o *webhook.Options) { o.Router = newBenchOver(t, catalog.Build(nil, nil), "").router }, http.StatusForbidden, "no such runtime in this cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := ready.options(t)
			test.edit(&options)
			answer := webhook.NewHandler(options).Handle(t.Context(), creation(Untrusted, shape(t, "bare").Raw))
			if answer.Allowed || answer.Result.Code != test.code || !strings.Contains(answer.Result.Message, test.want) {
				t.Errorf("allowed %t, %+v; want code %d and %q", answer.Allowed, answer.Result, test.code, test.want)
			}
			if final := webhook.NewPodValidator(options).Handle(t.Context(), creation(Untrusted, shape(t, "bare").Raw)); final.Allowed {
				t.Error("the validating endpoint admits it")
			}
		})
	}
}

// TestSilentOffIsSeenOnTheFinalObject: if the mutating half is not called at all, for a
// selector that matches nothing, the validating half refuses what it missed.
func TestSilentOffIsSeenOnTheFinalObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inBoth(t, false, func(t *testing.T, s *Shape, namespace string) {
		final, err := admitClass(b.catalog, s.Raw)
		if err != nil {
			t.Fatal(err)
		}
		answer := webhook.NewPodValidator(b.options(t)).Handle(t.Context(), creation(namespace, final))
		outcome, _ := b.admit(t, namespace, s.Raw)
		sandboxed := namespace == Untrusted || s.Name == "fork-build"
		if wantDenied := sandboxed && (outcome.Denied || outcome.Patched); answer.Allowed == wantDenied {
			t.Errorf("the validating endpoint: allowed %t; the pod is %s, patched %t", answer.Allowed, &outcome, outcome.Patched)
		}
	})
}

// TestDenialIsReadableThroughAController: a Tekton task that adds a field which is
// denied is told so in words that need no other context.
func TestDenialIsReadableThroughAController(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task, err := setSpec(shape(t, "tekton-task-run").Raw, map[string]any{"hostNetwork": true})
	if err != nil {
		t.Fatal(err)
	}
	outcome, _ := b.admit(t, Untrusted, task)
	if !outcome.Denied {
		t.Fatalf("%s", &outcome)
	}
	checkMessage(t, outcome.Message)
	for _, part := range []string{"spec.hostNetwork", `namespace "team-untrusted" is labelled trust=untrusted`, "use the pod network"} {
		if !strings.Contains(outcome.Message, part) {
			t.Errorf("%q is not said: %s", part, outcome.Message)
		}
	}
}
