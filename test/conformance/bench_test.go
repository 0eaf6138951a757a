package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	jsonpatchapply "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// bench is the product without a server: the shipped policy over a cluster.
type bench struct {
	router     *webhook.Router
	catalog    *catalog.Catalog
	namespaces map[string]*catalog.Namespace
	lookups    atomic.Int32 // of namespaces
}

// newBench is a bench over the cluster of the shapes, with the configuration as shipped.
func newBench(t testing.TB) *bench {
	t.Helper()
	cluster, err := Cluster()
	if err != nil {
		t.Fatal(err)
	}
	return newBenchOver(t, cluster.Catalog(), "")
}

// newBenchOver is a bench over another cluster. Config is laid over the one shipped.
func newBenchOver(t testing.TB, c *catalog.Catalog, config string) *bench {
	t.Helper()
	cluster, err := Cluster()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := policies.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), parsed); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return &bench{router: &webhook.Router{Engine: engine}, catalog: c, namespaces: cluster.Namespaces()}
}

// Namespace implements webhook.NamespaceGetter.
func (b *bench) Namespace(_ context.Context, name string) (*catalog.Namespace, error) {
	b.lookups.Add(1)
	if namespace := b.namespaces[name]; namespace != nil {
		return namespace, nil
	}
	return nil, fmt.Errorf("namespaces %q not found", name)
}

// options are those of handlers over the bench.
func (b *bench) options(t testing.TB) webhook.Options {
	t.Helper()
	metrics, err := webhook.NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return webhook.Options{Router: b.router, Namespaces: b, Deadline: time.Minute, Metrics: metrics, Log: logr.Discard(), Now: time.Now}
}

func (b *bench) input(t testing.TB, namespace string, raw json.RawMessage) policies.Input {
	t.Helper()
	pod, err := policies.ReadPod(raw)
	if err != nil {
		t.Fatal(err)
	}
	return policies.Input{
		Request:   policies.Request{Operation: string(admissionv1.Create), Namespace: namespace, Date: time.Now().UTC().Format(time.DateOnly)},
		Namespace: *b.namespaces[namespace],
		Pod:       pod,
	}
}

// route asks the router about a pod as it is.
func (b *bench) route(t testing.TB, namespace string, pod json.RawMessage) webhook.Route {
	t.Helper()
	route, err := b.router.Route(t.Context(), b.input(t, namespace, pod))
	if err != nil {
		t.Fatal(err)
	}
	return route
}

// admit takes a pod the way that it takes through an API server: the RuntimeClass
// plugin, the router, the plugin and the router once more, the plugin's validation, the
// judge. It fails the test where they get in each other's way.
func (b *bench) admit(t testing.TB, namespace string, pod json.RawMessage) (Outcome, webhook.Route) {
	t.Helper()
	before, err := admitClass(b.catalog, pod)
	if err != nil {
		return Outcome{Denied: true, Message: err.Error()}, webhook.Route{}
	}
	route := b.route(t, namespace, before)
	outcome := Outcome{Asked: route.PreviousRuntimeClassName, Class: route.RuntimeClassName}
	if route.Action == policies.Deny {
		outcome.Denied, outcome.Message = true, b.refusal(t, namespace, before)
		return outcome, route
	}
	outcome.Patched = len(route.Patch) > 0
	after := apply(t, before, route.Patch)
	if after, err = admitClass(b.catalog, after); err != nil {
		t.Fatalf("the API server refuses what the router made: %v", err)
	}
	b.checkResidue(t, pod, after)
	if again := b.route(t, namespace, after); len(again.Patch) > 0 || again.RuntimeClassName != route.RuntimeClassName {
		t.Errorf("a second round patches again: class %s, %v", again.RuntimeClassName, again.Patch)
	}
	if err := validateClass(b.catalog, after); err != nil {
		if outcome.Patched {
			t.Fatalf("the API server refuses what the router made: %v", err)
		}
		outcome.Denied, outcome.Message = true, err.Error()
		return outcome, route
	}
	judged, err := b.router.Judge(t.Context(), b.input(t, namespace, after))
	if err != nil {
		t.Fatal(err)
	}
	if judged.Action == policies.Deny {
		t.Errorf("what the router made is not what the judge admits: %v", judged.Reasons)
	}
	return outcome, route
}

// checkResidue fails the test if an admitted pod has a selector or a toleration that is
// neither its own nor its class's, or lacks one: of a class that is replaced nothing stays.
func (b *bench) checkResidue(t testing.TB, original, admitted json.RawMessage) {
	t.Helper()
	own, asked, err := readClass(b.catalog, original)
	if err != nil {
		t.Fatal(err)
	}
	got, class, err := readClass(b.catalog, admitted)
	if err != nil {
		t.Fatal(err)
	}
	selector, tolerations := map[string]string{}, slices.Clone(own.Tolerations)
	maps.Copy(selector, own.NodeSelector)
	if asked != nil { // the plugin has been at it before
		maps.DeleteFunc(selector, func(key, value string) bool { return asked.NodeSelector[key] == value })
		tolerations = slices.DeleteFunc(tolerations, func(t corev1.Toleration) bool { return slices.Contains(asked.Tolerations, t) })
	}
	if class != nil {
		maps.Copy(selector, class.NodeSelector)
		tolerations = mergeTolerations(tolerations, class.Tolerations)
	}
	if diff := cmp.Diff(selector, got.NodeSelector, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	sorted := cmpopts.SortSlices(func(a, b corev1.Toleration) bool { return a.String() < b.String() })
	if diff := cmp.Diff(tolerations, got.Tolerations, cmpopts.EquateEmpty(), sorted); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
}

// refusal is the message that the mutating endpoint refuses a pod with. A status that is
// not 403, or more than one line, fails the test.
func (b *bench) refusal(t testing.TB, namespace string, pod json.RawMessage) string {
	t.Helper()
	response := webhook.NewHandler(b.options(t)).Handle(t.Context(), creation(namespace, pod))
	if response.Allowed || response.Result == nil || response.Result.Code != http.StatusForbidden {
		t.Fatalf("got %+v, want a refusal with code 403", response)
	}
	return response.Result.Message
}

func creation(namespace string, pod json.RawMessage) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Namespace: namespace, Object: runtime.RawExtension{Raw: pod},
	}}
}

// apply applies a patch, and fails the test if it changes what the router may not.
func apply(t testing.TB, pod json.RawMessage, operations []jsonpatch.Operation) json.RawMessage {
	t.Helper()
	if len(operations) == 0 {
		return pod
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatchapply.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(pod)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if diff := cmp.Diff(others(t, pod), others(t, patched)); diff != "" {
		t.Errorf("the patch changes more than it may:\n%s", diff)
	}
	return patched
}

// others is a pod without the fields that the router may change.
func others(t testing.TB, pod json.RawMessage) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(pod, &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	for _, field := range []string{"runtimeClassName", "nodeSelector", "tolerations", "overhead"} {
		delete(spec, field)
	}
	metadata := object["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		for _, key := range []string{catalog.AnnotationTrust, catalog.AnnotationReason, catalog.AnnotationPolicyRevision} {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return object
}

// shape returns the shape of that name.
func shape(t testing.TB, name string) *Shape {
	t.Helper()
	shapes, err := Shapes()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })
	if i < 0 {
		t.Fatal(errors.New("there is no shape " + name))
	}
	return &shapes[i]
}
