package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestSwapsUnderLoad: while policies are swapped, every review is answered by one of them
// as a whole. Each swap is a [policies.Engine.Load] in full, with self-test and check, but
// of a policy of one rule and no tests: the shipped one takes a tenth of a second to load,
// and under the race detector most of one.
func TestSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	const swaps, reviews, clients = 200, 20_000, 8
	engine := checkedEngine(t)
	// The two differ in everything that an answer carries.
	classes := []string{"gvisor", "kata-qemu"}
	modules := make([]policies.Modules, len(classes))
	byRevision := map[string]string{}
	load := func(i int) {
		if err := engine.Load(t.Context(), modules[i], policies.DefaultConfig()); err != nil {
			t.Error(err)
		}
	}
	for i, class := range classes {
		modules[i] = policies.Modules{"p.rego": fmt.Sprintf(`package router

decision := {"action": "route", "trust": "untrusted", "runtimeClassName": %[1]q, "reasons": ["because of %[1]s"], "warnings": ["warned of %[1]s"]}
`, class)}
		load(i)
		snapshot, err := engine.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		byRevision[snapshot.Revision()] = class
	}
	if len(byRevision) != len(classes) {
		t.Fatalf("revisions %v", byRevision)
	}
	handler, _ := newHandler(t, func(o *Options) { o.Router = &Router{Engine: engine} })
	endpoint := &Endpoint{Handler: handler, Log: logr.Discard()}

	var asked atomic.Int64
	var group sync.WaitGroup
	seen := make([]map[string]int, clients) // answers by class
	for client := range clients {
		counts := map[string]int{}
		seen[client] = counts
		group.Go(func() {
			for n := asked.Add(1); n <= reviews && !t.Failed(); n = asked.Add(1) {
				class, err := consistent(endpoint, strconv.FormatInt(n, 10), byRevision)
				if err != nil {
					t.Error(err)
				}
				counts[class]++
			}
		})
	}
	begun := time.Now()
	for n := range swaps {
		load(n % len(modules))
	}
	t.Logf("%d swaps took %s, and %d reviews were begun meanwhile", swaps, time.Since(begun).Round(time.Millisecond), asked.Load())
	group.Wait()
	total := map[string]int{}
	for _, counts := range seen {
		for class, n := range counts {
			total[class] += n
		}
	}
	t.Logf("answers by class: %v", total)
	for _, class := range classes {
		if total[class] == 0 {
			t.Errorf("nothing was answered with %s: the policies were not swapped under load", class)
		}
	}
}

// consistent posts a review and returns the class that the pod gets, which the answer's
// revision, reason, warning and patch must all agree on.
func consistent(endpoint http.Handler, uid string, byRevision map[string]string) (string, error) {
	body := `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "` + uid + `", "operation": "CREATE", "namespace": "untrusted",
		"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}`
	recorder := httptest.NewRecorder()
	endpoint.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, MutatePodPath, bytes.NewBufferString(body)))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		return "", err
	}
	response := review.Response
	if response == nil || !response.Allowed || string(response.UID) != uid {
		return "", fmt.Errorf("review %s was not answered: %s", uid, recorder.Body)
	}
	revision := response.AuditAnnotations["policy-revision"]
	class, ok := byRevision[revision]
	if !ok {
		return "", fmt.Errorf("revision %q is of no policy", revision)
	}
	var operations []struct {
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if err := json.Unmarshal(response.Patch, &operations); err != nil {
		return "", err
	}
	got := map[string]any{"audit class": response.AuditAnnotations["runtime-class"], "audit reason": response.AuditAnnotations["reason"]}
	for _, operation := range operations {
		switch operation.Path {
		case "/spec/runtimeClassName":
			got["class"] = operation.Value
		case "/metadata/annotations":
			got["annotations"] = operation.Value
		}
	}
	for _, warning := range response.Warnings {
		got["warning"] = warning
	}
	reason := "because of " + class
	want := map[string]any{
		"audit class": class, "audit reason": reason, "class": class, "warning": "runtimeclass-router: warned of " + class,
		"annotations": map[string]any{
			catalog.AnnotationTrust: "untrusted", catalog.AnnotationReason: reason, catalog.AnnotationPolicyRevision: revision,
		},
	}
	if !reflect.DeepEqual(want, got) {
		return "", fmt.Errorf("the answer of revision %s mixes policies (-want +got):\n%s", revision, cmp.Diff(want, got))
	}
	return class, nil
}
