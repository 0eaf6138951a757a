package shadow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// patience bounds a wait for what happens at once unless something is broken.
const patience = time.Minute

// noWeb differs from the shipped policy by one rule.
const noWeb = `package router.custom

denials contains "no web here" if {
	input.pod.metadata.labels.app == "web"
}
`

type rig struct {
	*Shadow
	router    *webhook.Router
	namespace catalog.Namespace
	cluster   *catalog.Catalog
	directory string
}

// newRig runs a shadow of what is in directory, beside the shipped policy.
func newRig(t testing.TB, options Options, files map[string]string) *rig {
	t.Helper()
	manifests, err := catalog.ReadManifests([]string{"../cmd/runtimeclass-router/cluster.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		router:    &webhook.Router{Engine: policies.NewEngine()},
		namespace: catalog.Namespace{Name: "tenants", Labels: map[string]string{catalog.LabelTrust: "untrusted"}},
		cluster:   manifests.Catalog(),
		directory: t.TempDir(),
	}
	for name, text := range files {
		r.write(t, name, text)
	}
	if err := r.router.Engine.SetCatalog(t.Context(), r.cluster); err != nil {
		t.Fatal(err)
	}
	options.Mode, options.Directory = "extend", r.directory
	r.Shadow = New(Config{Options: options, Sources: sources.New(options.Options, catalog.ShadowLabelValue, nil, testr.New(&testing.T{})), Log: funcr.New(func(string, string) {}, funcr.Options{})})
	r.force(t, policies.DefaultConfig())
	r.SetCatalog(r.cluster)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.directory, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// force puts a configuration in force.
func (r *rig) force(t testing.TB, config policies.Config) {
	t.Helper()
	if err := r.router.Engine.Load(t.Context(), policies.Shipped(), config); err != nil {
		t.Fatal(err)
	}
	snapshot, err := r.router.Engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r.Paired(config, snapshot.Revision())
}

// decide is the decision in force on a pod of an application.
func (r *rig) decide(t testing.TB, uid, app string) *webhook.Decision {
	t.Helper()
	pod, err := policies.ReadPod(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "%s-x-", "labels": {"app": %q, "pod-template-hash": "x"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "%s-x", "uid": "1", "controller": true}]},
		"spec": {"containers": [{"name": "c", "image": "i"}]}}`, app, app, app))
	if err != nil {
		t.Fatal(err)
	}
	d := &webhook.Decision{
		Path:    webhook.MutatePodPath,
		Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: types.UID(uid), Namespace: "tenants", Operation: admissionv1.Create}},
		Input:   policies.Input{Request: policies.Request{Operation: "CREATE", Namespace: "tenants", Date: "2026-01-01"}, Namespace: r.namespace, Pod: pod},
	}
	d.Route, d.Err = r.router.Route(t.Context(), d.Input)
	return d
}

// tell tells the shadow as soon as it has room.
func (r *rig) tell(t testing.TB, d *webhook.Decision) {
	t.Helper()
	await(t, "room", func() bool { return len(r.waiting) < maxWaiting })
	r.Decided(t.Context(), d)
}

func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func (r *rig) outcomes() map[string]float64 {
	got := map[string]float64{}
	for _, outcome := range []string{"same", "different", "denied", "outdated", "dropped", "failed"} {
		if n := testutil.ToFloat64(r.decisions.WithLabelValues(outcome)); n > 0 {
			got[outcome] = n
		}
	}
	return got
}

// TestShadow: of ten thousand decisions exactly those are counted that differ, by owner, and
// nothing that is in force changes.
func TestShadow(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{PerSecond: 1_000_000, Sample: 1}, map[string]string{"custom.rego": noWeb})
	await(t, "the second policy", func() bool { return r.current.Load() != nil })
	const decisions = 10_000
	web := 0
	for i := range decisions {
		app := fmt.Sprintf("app-%d", i%50)
		if i%7 == 0 {
			app, web = "web", web+1
		}
		d := r.decide(t, fmt.Sprint(i), app)
		if d.Err != nil || d.Route.RuntimeClassName != "gvisor" {
			t.Fatalf("in force: %+v, %v", d.Route, d.Err)
		}
		r.tell(t, d)
	}
	await(t, "all decisions", func() bool { return r.Status().Compared == decisions })
	if diff := cmp.Diff(map[string]float64{"same": float64(decisions - web), "denied": float64(web)}, r.outcomes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	changes := r.Status().Changes
	if len(changes) != 1 || changes[0].Pods != web || !strings.Contains(changes[0].Reason, "no web here") {
		t.Fatalf("changes %+v, want one of %d pods", changes, web)
	}
	if diff := cmp.Diff(survey.Change{Namespace: "tenants", Owner: "Deployment/web", From: "gvisor", To: "DENIED", NewlyDenied: true}, changes[0].Change); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := testutil.ToFloat64(r.differences.WithLabelValues("gvisor", "DENIED")); int(n) != web {
		t.Errorf("%v differences are counted, want %d", n, web)
	}
}

// TestDroppedUnderLoad: a decision that is enforced does not wait for one that is not.
func TestDroppedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{PerSecond: 1}, map[string]string{"custom.rego": noWeb})
	await(t, "the second policy", func() bool { return r.current.Load() != nil })
	d := r.decide(t, "1", "web")
	for range 10 * maxWaiting {
		r.Decided(t.Context(), d)
	}
	if got := r.outcomes()["dropped"]; got < 8*maxWaiting {
		t.Errorf("%v are dropped of %d, with room for %d", got, 10*maxWaiting, maxWaiting)
	}
}

// TestBrokenSecondPolicy: it is said what is wrong, the last good one stays, and one that is
// taken away is none.
func TestBrokenSecondPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{PerSecond: 1000}, map[string]string{"custom.rego": noWeb})
	await(t, "the second policy", func() bool { return r.Status().Revision != "" })
	before := r.Status().Revision
	r.write(t, "custom.rego", "package router.custom\n\ndenials contains x if input.pod.spec.hostNetwrok\n")
	await(t, "an error", func() bool { return len(r.Status().Errors) > 0 })
	if status := r.Status(); status.Revision != before || !strings.Contains(strings.Join(status.Errors, "\n"), "custom.rego:3") {
		t.Errorf("status %+v, want revision %s and the place of the fault", status, before)
	}
	r.write(t, "custom.rego", noWeb+"\n# mended\n")
	await(t, "the mended one", func() bool { s := r.Status(); return len(s.Errors) == 0 && s.Revision != before })
}

// TestOutdated: a decision over another catalog or configuration than the second policy's says
// nothing about policies.
func TestOutdated(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{PerSecond: 1_000_000}, map[string]string{"custom.rego": noWeb})
	await(t, "the second policy", func() bool { return r.current.Load() != nil })
	old := r.decide(t, "1", "web")
	config := policies.DefaultConfig()
	config.GPUResources = append(config.GPUResources, "example.com/gpu")
	r.force(t, config)
	r.tell(t, old)
	await(t, "the old decision", func() bool { return r.outcomes()["outdated"] == 1 })
	await(t, "the new configuration", func() bool { return r.current.Load().digest == digestOf(config) })
	other := r.decide(t, "2", "web")
	other.Route.CatalogRevision = "another"
	r.tell(t, other)
	await(t, "the other catalog", func() bool { return r.outcomes()["outdated"] == 2 })
	r.tell(t, r.decide(t, "3", "web"))
	await(t, "one that counts", func() bool { return r.outcomes()["denied"] == 1 })
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{Mode: "extend", PerSecond: 1, Sample: 0.5}
	for want, edit := range map[string]func(*Options){
		"":          func(*Options) {},
		"mode":      func(o *Options) { o.Mode = "both" },
		"perSecond": func(o *Options) { o.PerSecond = 0 },
		"sample":    func(o *Options) { o.Sample = 2 },
	} {
		o := good
		edit(&o)
		errs := o.Validate(nil)
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || errs[0].Field != want) {
			t.Errorf("%q: %v", want, errs)
		}
	}
}

// BenchmarkDecided is what an enforced decision pays for the second policy, with room in the
// queue and without.
func BenchmarkDecided(b *testing.B) {
	r := newRig(b, Options{PerSecond: 100}, map[string]string{"custom.rego": noWeb})
	await(b, "the second policy", func() bool { return r.current.Load() != nil })
	d := r.decide(b, "1", "web")
	b.ReportAllocs()
	for b.Loop() {
		r.Decided(b.Context(), d)
	}
}
