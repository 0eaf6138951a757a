package audit

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// TestScan: one page after the other; what cannot be read is counted and keeps nothing
// else from being looked at, be it a panic.
func TestScan(t *testing.T) {
	t.Parallel()
	pages := map[string][]any{
		"": {runningPod(), runningPod(func(p *corev1.Pod) { p.Name, p.Namespace = "panics", "cursed" }), map[string]any{"metadata": 1}},
		"2": {
			runningPod(func(p *corev1.Pod) { p.Name, p.OwnerReferences = "bare", nil }),
			runningPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		},
	}
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/api/v1/pods":
			answerStatus(w, http.StatusNotFound) // no API of reports
		case status != http.StatusOK:
			answerStatus(w, status)
		default:
			page := r.URL.Query().Get("continue")
			meta := metav1.ListMeta{Continue: map[string]string{"": "2"}[page]}
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": pages[page]})
		}
	}))
	t.Cleanup(server.Close)
	a := auditor(t, untrusted)
	inner := a.Namespace
	a.Namespace = func(ctx context.Context, name string) (*catalog.Namespace, error) {
		if name == "cursed" {
			panic("cursed")
		}
		return inner(ctx, name)
	}
	registry := prometheus.NewRegistry()
	s := evictor(t, server.URL, a, events.NewFakeRecorder(1), registry).Scanner
	s.options.Reports = true
	evictable, err := s.scan(t.Context())
	if diff := cmp.Diff([]candidate{{"shop", "p", "1"}}, evictable, cmp.AllowUnexported(candidate{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	want := map[string]float64{
		"audit_errors_total pods": 2, "audit_errors_total reports": 1,
		"audit_pods below-floor enforce": 2,
	}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// A scan that ends early tells nothing new, and another is due.
	status = http.StatusForbidden
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s.options.Interval = metav1.Duration{Duration: time.Hour}
	s.scanUntil(ctx)
	want["audit_errors_total scan"] = 1
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("after one that fails (-want +got)\n%s", diff)
	}
	s.metrics.forget()
	delete(want, "audit_pods below-floor enforce")
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("by a replica that does not scan (-want +got)\n%s", diff)
	}
}

// counted are the values of metrics by name and labels, but for times.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := strings.TrimPrefix(family.GetName(), "runtimeclass_router_")
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			if !strings.HasSuffix(key, "_seconds") {
				values[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return values
}
