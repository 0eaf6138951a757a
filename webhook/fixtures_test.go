package webhook

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	jsonpatchapply "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

const fixtures = "../test/fixtures"

// newRouter routes with the shipped policy over the cluster of the fixtures.
func newRouter(t testing.TB) (*Router, map[string]*catalog.Namespace) {
	t.Helper()
	cluster, err := catalog.ReadManifests([]string{filepath.Join(fixtures, "cluster.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), policies.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), cluster.Catalog()); err != nil {
		t.Fatal(err)
	}
	return &Router{Engine: engine}, cluster.Namespaces()
}

// TestFixtures routes the pod of each fixture and compares with its route.json.
func TestFixtures(t *testing.T) {
	t.Parallel()
	router, namespaces := newRouter(t)
	for name, fixture := range fixturePods(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := namespaces[fixture.namespace]
			if namespace == nil {
				t.Fatalf("the cluster of the fixtures has no namespace %q", fixture.namespace)
			}
			route := mustRoute(t, router, namespace, fixture.pod)
			checkPatch(t, router, namespace, fixture.pod, route.Patch)
			compareGolden(t, filepath.Join(fixtures, name, "route.json"), route)
		})
	}
}

func mustRoute(t *testing.T, router *Router, namespace *catalog.Namespace, pod json.RawMessage) Route {
	t.Helper()
	route, err := router.Route(t.Context(), policies.Input{Namespace: *namespace, Pod: asPod(t, pod)})
	if err != nil {
		t.Fatal(err)
	}
	return route
}

func compareGolden(t *testing.T, path string, route Route) {
	t.Helper()
	for i, op := range route.Patch { // the revision changes with every edit of the policy
		if values, ok := op.Value.(map[string]string); ok && values[catalog.AnnotationPolicyRevision] != "" {
			values[catalog.AnnotationPolicyRevision] = "REVISION"
		}
		if op.Path == "/metadata/annotations/"+escape(catalog.AnnotationPolicyRevision) {
			route.Patch[i].Value = "REVISION"
		}
	}
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(route); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s differs (-want +got); make golden writes it anew:\n%s", path, diff)
	}
}

// checkPatch holds every patch to three properties: it applies; outside the allowed
// paths nothing changes; and a second pass over its result patches nothing.
func checkPatch(t *testing.T, router *Router, namespace *catalog.Namespace, pod json.RawMessage, operations []jsonpatch.Operation) {
	t.Helper()
	patched := apply(t, pod, operations)
	if diff := cmp.Diff(outside(t, pod), outside(t, patched)); diff != "" {
		t.Errorf("the patch changes more than it may:\n%s", diff)
	}
	if again := mustRoute(t, router, namespace, patched); len(again.Patch) > 0 {
		t.Errorf("a second pass patches again: %v", again.Patch)
	}
}

func apply(t *testing.T, pod json.RawMessage, operations []jsonpatch.Operation) json.RawMessage {
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
	return patched
}

// outside decodes a pod without what routing may change.
func outside(t *testing.T, pod json.RawMessage) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(pod, &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	for _, key := range []string{"runtimeClassName", "nodeSelector", "tolerations", "overhead"} {
		delete(spec, key)
	}
	metadata := object["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		for _, key := range []string{catalog.AnnotationTrust, catalog.AnnotationReason, catalog.AnnotationPolicyRevision} {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	} else if metadata["annotations"] == nil { // null: adding to it replaces it
		delete(metadata, "annotations")
	}
	return object
}

type fixturePod struct {
	namespace string
	pod       json.RawMessage
}

// fixturePods are the pods of the fixtures, by their names.
func fixturePods(t testing.TB) map[string]fixturePod {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fixtures, "*", "pod.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	pods := map[string]fixturePod{}
	for _, file := range files {
		manifests, err := catalog.ReadManifests([]string{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Metadata struct{ Namespace string } }
		if err := json.Unmarshal(manifests.Documents[0].Raw, &head); err != nil {
			t.Fatal(err)
		}
		pods[filepath.Base(filepath.Dir(file))] = fixturePod{namespace: head.Metadata.Namespace, pod: manifests.Documents[0].Raw}
	}
	return pods
}

// asPod reads a pod that can be read.
func asPod(t testing.TB, raw []byte) *policies.Pod {
	t.Helper()
	pod, err := readPod(raw)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
