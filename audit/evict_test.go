package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// auditor decides over the shipped policy and two classes.
func auditor(t *testing.T, labels map[string]string) *Auditor {
	t.Helper()
	manifests := &catalog.Manifests{}
	err := manifests.Add("classes", []byte(`
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: crun}, handler: crun}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}, handler: runsc, scheduling: {nodeSelector: {a: b}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), policies.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), manifests.Catalog()); err != nil {
		t.Fatal(err)
	}
	return &Auditor{
		Side: &survey.Side{Source: &policies.Source{}, Router: &webhook.Router{Engine: engine}},
		Now:  time.Now,
		Namespace: func(_ context.Context, name string) (*catalog.Namespace, error) {
			return &catalog.Namespace{Name: name, Labels: labels}, nil
		},
	}
}

var untrusted = map[string]string{catalog.LabelTrust: "untrusted"}

func runningPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "shop", UID: "1", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "9", Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, apply := range change {
		apply(p)
	}
	return p
}

// TestEvict: what becomes of one attempt, and what the API server is asked.
func TestEvict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels map[string]string
		change func(*corev1.Pod)
		status int // of the eviction
		before time.Duration
		want   string
		asks   bool
	}{
		"below its floor":       {labels: untrusted, status: 201, want: evicted, asks: true},
		"a budget":              {labels: untrusted, status: 429, want: blocked, asks: true},
		"gone meanwhile":        {labels: untrusted, status: 404, want: gone, asks: true},
		"another of its name":   {labels: untrusted, status: 409, want: gone, asks: true},
		"a server that fails":   {labels: untrusted, status: 500, want: failed, asks: true},
		"trusted again":         {labels: map[string]string{catalog.LabelTrust: "trusted"}, want: gone},
		"not enforced any more": {labels: map[string]string{catalog.LabelTrust: "untrusted", catalog.LabelMode: "warn"}, want: gone},
		"not found":             {labels: untrusted, change: func(p *corev1.Pod) { p.Name = "" }, want: gone},
		"of the same name":      {labels: untrusted, change: func(p *corev1.Pod) { p.UID = "2" }, want: gone},
		"nobody makes another":  {labels: untrusted, change: func(p *corev1.Pod) { p.OwnerReferences = nil }, want: gone},
		"the next is refused":   {labels: untrusted, change: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: gone},
		"ended":                 {labels: untrusted, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, want: gone},
		"older than the last":   {labels: untrusted, status: 201, before: time.Minute, want: evicted, asks: true},
		"no better":             {labels: untrusted, before: 2 * time.Hour, want: futile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := runningPod()
			if test.change != nil {
				test.change(pod)
			}
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodPost:
					var eviction struct{ DeleteOptions metav1.DeleteOptions }
					_ = json.NewDecoder(r.Body).Decode(&eviction)
					asked = fmt.Sprint(r.URL.Path, " ", *eviction.DeleteOptions.Preconditions.UID)
					answerStatus(w, test.status)
				case pod.Name == "":
					answerStatus(w, http.StatusNotFound)
				default:
					_ = json.NewEncoder(w).Encode(pod)
				}
			}))
			t.Cleanup(server.Close)
			recorder := events.NewFakeRecorder(1)
			e := evictor(t, server.URL, auditor(t, test.labels), recorder, prometheus.NewRegistry())
			if test.before > 0 {
				e.last.Add("9", time.Now().Add(-test.before))
			}
			outcome, err := e.evict(t.Context(), candidate{namespace: "shop", name: "p", uid: "1"})
			if outcome != test.want || (err != nil) != (outcome == failed || outcome == futile || outcome == blocked) {
				t.Errorf("%s, %v, want %s", outcome, err, test.want)
			}
			if want := map[bool]string{true: "/api/v1/namespaces/shop/pods/p/eviction 1"}[test.asks]; asked != want {
				t.Errorf("asked %q, want %q", asked, want)
			}
			if told := len(recorder.Events) == 1; told != (outcome == evicted) {
				t.Errorf("an Event: %v", told)
			}
		})
	}
}

func answerStatus(w http.ResponseWriter, code int) {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(code), Status: metav1.StatusSuccess}
	if code >= 400 {
		status.Status, status.Reason = metav1.StatusFailure, map[int]metav1.StatusReason{
			404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
		}[code]
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status)
}

func evictor(t *testing.T, url string, auditor *Auditor, recorder events.EventRecorder, registry *prometheus.Registry) *Evictor {
	t.Helper()
	counted, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewScanner(Options{PodsPerSecond: 1000, EvictionsPerMinute: 60}, auditor, &rest.Config{Host: url}, recorder, counted, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return s.evictor
}

// TestTally keeps so many findings, and counts on.
func TestTally(t *testing.T) {
	t.Parallel()
	a := auditor(t, untrusted)
	tally := NewTally(2, false)
	for i := range 20 {
		pod := runningPod(func(p *corev1.Pod) {
			p.Name = fmt.Sprintf("p-%02d", 19-i)
			p.OwnerReferences[0].Name = fmt.Sprintf("owner-%d", i%4)
		})
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		document, err := survey.Live(raw)
		if err != nil {
			t.Fatal(err)
		}
		looked, err := a.Look(t.Context(), document)
		if err != nil {
			t.Fatal(err)
		}
		tally.Add(i, looked)
	}
	report := tally.Report()
	if report.Found[BelowFloor] != 20 || report.Unlisted != 10 || len(report.Findings) != 2 {
		t.Fatalf("%d found, %d not listed, %d findings", report.Found[BelowFloor], report.Unlisted, len(report.Findings))
	}
	first := report.Findings[0]
	if got := strings.Join(first.Names, " "); first.Owner != "ReplicaSet/owner-0" || first.Pods != 5 || got != "p-03 p-07 p-11 p-15 p-19" {
		t.Errorf("%s: %d pods, %s", first.Owner, first.Pods, got)
	}
	for range 3 { // more of one owner than are named
		tally.Add(20, &Looked{Namespace: "shop", Name: "p-00", Finding: &first.Finding})
	}
	if first = tally.Report().Findings[0]; first.Pods != 8 || strings.Join(first.Names, " ") != "p-00 p-00 p-00 p-03 p-07" {
		t.Errorf("%d pods, %v", first.Pods, first.Names)
	}
}

// TestReportIsBounded, also with names of the greatest length.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 253)
	var findings []Counted
	for range 2000 {
		findings = append(findings, Counted{Finding: Finding{
			Namespace: long[:63], Owner: "StatefulSet/" + long, Kind: Drifted, Severity: "low", Mode: policies.Enforce, Enforced: true,
			RuntimeClassName: long, Today: long,
		}, Pods: 7, Names: []string{long, long, long, long, long}, Reason: strings.Repeat("r", maxReason)})
	}
	object := (&Reports{kind: "Report", resource: reportAPIs[0].resource}).object("shop", findings, 3)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	results, summary := object.Object["results"].([]any), object.Object["summary"].(map[string]any)
	if last := results[len(results)-1].(map[string]any); len(results) != maxResults+1 || last["rule"] != "unlisted" || !strings.HasPrefix(last["message"].(string), "1700 more findings") {
		t.Errorf("%d results, the last %v", len(results), last)
	}
	if summary["fail"] != int64(14000) || summary["pass"] != int64(3) {
		t.Errorf("summary %v", summary)
	}
	if len(raw) > 5<<18 {
		t.Errorf("%d bytes", len(raw))
	}
}
