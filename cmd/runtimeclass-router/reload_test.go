package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// told delivers what it is told to.
type told struct {
	id         sources.ID
	deliveries chan sources.Delivery
}

func (s *told) ID() sources.ID { return s.id }

func (s *told) Run(ctx context.Context, deliver func(sources.Delivery)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-s.deliveries:
			deliver(d)
		}
	}
}

// reloading is a loader whose steps a test takes.
type reloading struct {
	*loader
	t          *testing.T
	file       string // the configuration
	configMaps *told
	bundle     *told
	registry   *prometheus.Registry
	errors     *[]string // logged
	events     *[]refusal
}

func newReloading(t *testing.T, mode string) *reloading {
	t.Helper()
	r := &reloading{
		t: t, file: write(t, head+"policies: {mode: "+mode+", configMaps: {namespace: router}}\n"), registry: prometheus.NewRegistry(),
		configMaps: &told{sources.ID{Kind: sources.KindConfigMaps, Name: "router"}, make(chan sources.Delivery)},
		bundle:     &told{sources.ID{Kind: sources.KindBundle, Name: "https://a/b"}, make(chan sources.Delivery)},
		errors:     &[]string{}, events: &[]refusal{},
	}
	metrics, err := webhook.NewMetrics(r.registry)
	if err != nil {
		t.Fatal(err)
	}
	read := func() (*config, error) { return loadConfig(r.file) }
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	cluster := catalog.Build(nil, nil)
	r.loader = &loader{
		read: read, set: sources.NewSet([]sources.Source{sources.NewEmbedded(), r.configMaps, r.bundle}),
		engine: policies.NewEngine(), catalog: func() *catalog.Catalog { return cluster }, metrics: metrics,
		log: funcr.New(func(_, args string) {
			if strings.Contains(args, `"error"=`) {
				*r.errors = append(*r.errors, args)
			}
		}, funcr.Options{}),
		refused: func(f refusal) { *r.events = append(*r.events, f) }, inForce: func() {}, loaded: make(chan struct{}),
		running: c, config: c, told: map[string]string{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.set.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-r.set.Changed() // the shipped policy
	return r
}

// deliver hands something over and takes a step.
func (r *reloading) deliver(from *told, d sources.Delivery) {
	r.t.Helper()
	from.deliveries <- d
	from.deliveries <- sources.Delivery{Err: d.Err} // taken when the one before it has been dealt with
	r.step(r.t.Context())
}

// configMap hands over the files of a ConfigMap called policy.
func (r *reloading) configMap(files policies.Modules) {
	r.t.Helper()
	modules := policies.Modules{}
	for name, source := range files {
		modules["policy/"+name] = source
	}
	r.deliver(r.configMaps, sources.Delivery{Modules: modules, Objects: map[string]corev1.ObjectReference{"policy": {Kind: "ConfigMap", Name: "policy"}}})
}

// statusz is what is answered over HTTP.
func (r *reloading) statusz() statusReport {
	r.t.Helper()
	recorder := httptest.NewRecorder()
	r.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, statuszPath, nil))
	var s statusReport
	if err := json.Unmarshal(recorder.Body.Bytes(), &s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *reloading) counted(outcome string) int {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "runtimeclass_router_config_reloads_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == outcome {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	return 0
}

var (
	goodHook   = policies.Modules{"a.rego": "package router.custom\n\ndenials contains \"no\" if input.pod.spec.hostPID\n"}
	brokenHook = policies.Modules{"a.rego": "package router.custom\n\ndenials contains \"no\" if {\n"}
)

// TestReloadWaits: a policy that was asked for and is not there is not decided without.
func TestReloadWaits(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	r.configMap(nil)
	if _, err := r.engine.Snapshot(); !errors.Is(err, policies.ErrNotLoaded) {
		t.Errorf("without the bundle: %v", err)
	}
	if s := r.statusz(); s.Policy.Revision != "" || s.Policy.LoadedAt != nil || !cmp.Equal(s.Policy.Errors, []string{"waiting for policy sources: bundle https://a/b"}) {
		t.Errorf("status %+v", s.Policy)
	}
	r.deliver(r.bundle, sources.Delivery{Err: errors.New("status 500")})
	if s := r.statusz(); s.Sources[2].State != "waiting" || !cmp.Equal(s.Sources[2].Errors, []string{"status 500"}) {
		t.Errorf("status %+v", s.Sources[2])
	}
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{"b.rego": "package router.custom\n"}, ETag: "e"})
	select {
	case <-r.loaded:
	default:
		t.Fatalf("not loaded: %+v", r.statusz())
	}
	s := r.statusz()
	if s.Policy.Revision == "" || s.Policy.LoadedAt == nil || s.Policy.Mode != "extend" || s.Policy.Errors != nil || s.Sources[2].ETag != "e" || s.Catalog.Revision == "" {
		t.Errorf("status %+v", s)
	}
	if r.counted("success") != 0 || r.counted("error") != 1 {
		t.Errorf("%d successes and %d errors are counted, want 0 and 1", r.counted("success"), r.counted("error"))
	}
}

// TestReloadKeepsTheLastGood: a fault is told once, in every place, and the way back is one
// success.
func TestReloadKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	r.configMap(goodHook)
	good := r.statusz().Policy.Revision
	for range 3 {
		r.configMap(brokenHook)
	}
	s := r.statusz()
	if good == "" || s.Policy.Revision != good {
		t.Errorf("revision %q, want %q as before", s.Policy.Revision, good)
	}
	for _, errs := range [][]string{s.Policy.Errors, s.Sources[1].Errors} {
		if len(errs) != 1 || !strings.HasPrefix(errs[0], "policy/a.rego:4") {
			t.Errorf("errors %q", errs)
		}
	}
	if len(*r.errors) != 1 || r.counted("error") != 1 {
		t.Errorf("logged %d times, counted %d times: %v", len(*r.errors), r.counted("error"), *r.errors)
	}
	if len(*r.events) != 1 {
		t.Fatalf("%d events", len(*r.events))
	}
	for object, problems := range (*r.events)[0] {
		if object.Name != "policy" || problems[0].Line == 0 {
			t.Errorf("event on %s: %v", object.Name, problems)
		}
	}
	r.configMap(goodHook)
	if s := r.statusz(); s.Policy.Errors != nil || s.Sources[1].Errors != nil {
		t.Errorf("status %+v", s)
	}
	for range 2 {
		r.step(t.Context())
	}
	if got := r.counted("success"); got != 1 {
		t.Errorf("%d successes are counted, want 1", got)
	}
	// Two sources with one name, and then one.
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{"policy/a.rego": "package router.custom\n"}})
	if s := r.statusz(); len(s.Policy.Errors) != 1 || !strings.Contains(s.Policy.Errors[0], "the file is in two sources") {
		t.Errorf("errors %q", s.Policy.Errors)
	}
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	if s := r.statusz(); s.Policy.Errors != nil || s.Policy.Revision != good {
		t.Errorf("status %+v", s.Policy)
	}
}

// TestReloadOfTheConfiguration: the file and the sources do not wait for each other.
func TestReloadOfTheConfiguration(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	r.configMap(nil)
	before := r.statusz().Policy.Revision
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(r.file, []byte(head+text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.step(t.Context())
	}
	configure("router: {levls: []}\n")
	s := r.statusz().Policy
	if len(s.ConfigurationErrors) == 0 || !strings.Contains(s.ConfigurationErrors[0], "levls") || s.Revision != before {
		t.Errorf("status %+v", s)
	}
	r.configMap(goodHook)
	if s := r.statusz().Policy; s.Revision == before {
		t.Error("a faulty configuration keeps a policy from being loaded")
	}
	before = r.statusz().Policy.Revision
	configure("policies: {configMaps: {namespace: router}}\nrouter: {gpuRuntimes: [kata-qemu]}\n")
	if s := r.statusz().Policy; s.Revision == before || s.ConfigurationErrors != nil {
		t.Errorf("status %+v", s)
	}
	// The mode is live. What is there is no whole policy.
	configure("policies: {mode: replace, configMaps: {namespace: router}}\n")
	if s := r.statusz().Policy; len(s.Errors) != 1 || !strings.Contains(s.Errors[0], "no rule data.router.decision") || s.Mode != "extend" {
		t.Errorf("status %+v", s)
	}
}

// TestReloadKeepsBundles once they are in force.
func TestReloadKeepsBundles(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	r.deliver(r.configMaps, sources.Delivery{Modules: policies.Modules{}})
	var kept []string
	bundle := func(name, source string) {
		t.Helper()
		r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{"b.rego": source}, Keep: func() error {
			kept = append(kept, name)
			return nil
		}})
	}
	bundle("good", goodHook["a.rego"])
	bundle("broken", brokenHook["a.rego"])
	bundle("good again", "package router.custom\n")
	bundle("signed anew", "package router.custom\n")
	if diff := cmp.Diff([]string{"good", "good again", "signed anew"}, kept); diff != "" {
		t.Error(diff)
	}
}

// TestFaultWithoutAPlaceIsTheChangedObjects: a conflict shows in the shipped policy.
func TestFaultWithoutAPlaceIsTheChangedObjects(t *testing.T) {
	t.Parallel()
	r := newReloading(t, "extend")
	r.deliver(r.bundle, sources.Delivery{Modules: policies.Modules{}})
	objects := map[string]corev1.ObjectReference{"one": {Name: "one"}, "two": {Name: "two"}}
	r.deliver(r.configMaps, sources.Delivery{Objects: objects, Modules: policies.Modules{"one/a.rego": "package router.custom\n", "two/a.rego": "package router.custom\n"}})
	r.deliver(r.configMaps, sources.Delivery{Objects: objects, Modules: policies.Modules{
		"one/a.rego": "package router.custom\n",
		"two/a.rego": "package router.custom\n\ncandidates contains [\"gvisor\"]\n\ncandidates contains [\"kata-fc\"]\n",
	}})
	if len(*r.events) != 1 {
		t.Fatalf("%d events; status %+v", len(*r.events), r.statusz())
	}
	var names []string
	for object := range (*r.events)[0] {
		names = append(names, object.Name)
	}
	if !slices.Equal(names, []string{"two"}) {
		t.Errorf("told %v", names)
	}
}

// TestAttemptsStand: what failed is tried again where it may end otherwise.
func TestAttemptsStand(t *testing.T) {
	t.Parallel()
	start := time.Now()
	good, failed := attempt{"a", false, "c1", start}, attempt{"a", true, "c1", start}
	for name, test := range map[string]struct {
		last, next   attempt
		loaded, want bool
	}{
		"the same":                 {good, attempt{"a", false, "c2", start.Add(time.Hour)}, true, true},
		"other files":              {good, attempt{"b", false, "c1", start}, true, false},
		"failed":                   {failed, attempt{"a", false, "c1", start.Add(time.Hour)}, true, true},
		"failed, another catalog":  {failed, attempt{"a", false, "c2", start}, true, false},
		"failed at the start":      {failed, attempt{"a", false, "c1", start.Add(time.Second)}, false, true},
		"failed at the start, ago": {failed, attempt{"a", false, "c1", start.Add(startRetry)}, false, false},
	} {
		if got := test.last.stands(&test.next, test.loaded); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// TestSocketsAreNotNews: the local port of a request is another each time.
func TestSocketsAreNotNews(t *testing.T) {
	t.Parallel()
	l := &loader{told: map[string]string{}, log: logr.Discard()}
	one := errors.New("read tcp 10.0.0.1:41234->10.0.0.2:443: connection reset by peer")
	two := errors.New("read tcp 10.0.0.1:41236->10.0.0.2:443: connection reset by peer")
	if !l.isNew("a", one) || l.isNew("a", two) || !l.isNew("b", two) || !l.isNew("a", errors.New("status 500")) {
		t.Error("told twice, or not")
	}
	if l.isNew("a", nil) || !l.isNew("a", one) {
		t.Error("a fault that comes back is not told")
	}
}
