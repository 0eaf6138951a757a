package decisionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// seen is an observer that keeps what it is told.
type seen struct{ decisions []*webhook.Decision }

func (s *seen) Decided(_ context.Context, d *webhook.Decision) {
	s.decisions = append(s.decisions, d)
}

// server answers reviews by the shipped policy, over the cluster of the fixtures.
type server struct {
	mutate, validate admission.Handler
	seen             *seen
}

func newServer(t testing.TB, observers ...webhook.Observer) *server {
	t.Helper()
	cluster, err := catalog.ReadManifests([]string{filepath.Join("..", "test", "fixtures", "cluster.yaml")}, nil)
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
	metrics, err := webhook.NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{seen: &seen{}}
	options := webhook.Options{
		Router:     &webhook.Router{Engine: engine},
		Namespaces: namespaces(cluster.Namespaces()),
		Deadline:   time.Minute,
		Metrics:    metrics,
		Log:        logr.Discard(),
		Now:        time.Now,
		Observers:  append(observers, s.seen),
	}
	s.mutate, s.validate = webhook.NewHandler(options), webhook.NewPodValidator(options)
	return s
}

type namespaces map[string]*catalog.Namespace

func (n namespaces) Namespace(_ context.Context, name string) (*catalog.Namespace, error) {
	if found := n[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("namespaces %q not found", name)
}

// review is a request to create a pod.
func review(namespace, uid, pod string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: types.UID(uid), Operation: admissionv1.Create, Namespace: namespace,
		UserInfo: authenticationv1.UserInfo{Username: "alice", Groups: []string{"dev"}},
		Object:   runtime.RawExtension{Raw: []byte(pod)},
	}}
}

// owned is a pod of a ReplicaSet; spec is the rest of its spec.
func owned(spec string) string {
	return `{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "api-7d4f9c-", "ownerReferences": [
		{"apiVersion": "example.com/v1", "kind": "Other", "name": "other", "uid": "o-1"},
		{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d4f9c", "uid": "rs-1", "controller": true}]},
		"spec": {"containers": [{"name": "c", "image": "i"}]` + spec + `}}`
}

const (
	plain       = ""
	hostNetwork = `, "hostNetwork": true`
)

// decide returns what was decided about one pod of a ReplicaSet.
func decide(t testing.TB, namespace, spec string) *webhook.Decision {
	t.Helper()
	s := newServer(t)
	s.mutate.Handle(t.Context(), review(namespace, "u-1", owned(spec)))
	return s.seen.decisions[0]
}

// failed is a decision that ended in an error.
func failed() *webhook.Decision {
	request := review("untrusted", "u-1", owned(plain))
	pod, err := policies.ReadPod(request.Object.Raw)
	if err != nil {
		panic(err)
	}
	response := admission.Errored(500, errors.New("runtimeclass-router: no"))
	return &webhook.Decision{
		Path: webhook.MutatePodPath, Request: &request, Input: policies.Input{Pod: pod}, Err: errors.New("no"), Response: &response,
		Route: webhook.Route{Mode: policies.Enforce, PolicyRevision: "r1"},
	}
}

func asJSON(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// value is what a counter stands at.
func value(t testing.TB, c prometheus.Collector, sink, outcome string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["sink"] == sink && labels["outcome"] == outcome {
				return metric.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no counter of %s, %s", sink, outcome)
	return 0
}
