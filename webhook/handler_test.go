package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// lookup is a NamespaceGetter.
type lookup func(ctx context.Context, name string) (*catalog.Namespace, error)

func (f lookup) Namespace(ctx context.Context, name string) (*catalog.Namespace, error) {
	return f(ctx, name)
}

// newHandler serves the shipped policy over the cluster of the fixtures; edits change
// its options.
func newHandler(t testing.TB, edits ...func(*Options)) (*Handler, *prometheus.Registry) {
	t.Helper()
	router, namespaces := newRouter(t)
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Router: router,
		Namespaces: lookup(func(_ context.Context, name string) (*catalog.Namespace, error) {
			if ns := namespaces[name]; ns != nil {
				return ns, nil
			}
			return nil, fmt.Errorf("namespaces %q not found", name)
		}),
		Deadline: time.Minute,
		Metrics:  metrics,
		Log:      logr.Discard(),
		Now:      time.Now,
	}
	for _, edit := range edits {
		edit(&options)
	}
	return NewHandler(options), registry
}

func create(namespace, spec string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Create, Namespace: namespace, Name: "p", Object: runtime.RawExtension{Raw: pod(spec)},
	}}
}

// counted are the samples of the registry's counters, by name and label values.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "runtimeclass_router_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			switch {
			case metric.GetCounter() != nil:
				samples[name] = metric.GetCounter().GetValue()
			case metric.GetGauge() != nil:
				samples[name] = metric.GetGauge().GetValue()
			case metric.GetHistogram() != nil:
				samples[name] = float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return samples
}

func TestWhatIsNoCreationIsAllowedUnseen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		operation   admissionv1.Operation
		subresource string
	}{
		"update":               {admissionv1.Update, ""},
		"delete":               {admissionv1.Delete, ""},
		"connect":              {admissionv1.Connect, "exec"},
		"ephemeral containers": {admissionv1.Update, "ephemeralcontainers"},
		"resize":               {admissionv1.Update, "resize"},
		"status":               {admissionv1.Update, "status"},
		"eviction":             {admissionv1.Create, "eviction"},
		"binding":              {admissionv1.Create, "binding"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, registry := newHandler(t, func(o *Options) {
				o.Namespaces = lookup(func(_ context.Context, name string) (*catalog.Namespace, error) {
					t.Errorf("namespace %s was looked up", name)
					return nil, errors.New("no")
				})
			})
			request := create("untrusted", "")
			request.Operation, request.SubResource = test.operation, test.subresource
			if diff := cmp.Diff(admission.Allowed(""), handler.Handle(t.Context(), request)); diff != "" {
				t.Error(diff)
			}
			if got := counted(t, registry); len(got) > 0 {
				t.Errorf("counted as a decision: %v", got)
			}
		})
	}
}

func TestANamespaceThatCannotBeReadGetsNoDefault(t *testing.T) {
	t.Parallel()
	handler, registry := newHandler(t, func(o *Options) {
		o.Namespaces = lookup(func(context.Context, string) (*catalog.Namespace, error) {
			return nil, errors.New("connection refused")
		})
	})
	response := handler.Handle(t.Context(), create("some-ns", ""))
	if response.Allowed || response.Result.Code != 500 || len(response.Patches) > 0 {
		t.Fatalf("got %+v", response)
	}
	for _, want := range []string{`namespace "some-ns"`, "try again", "connection refused"} {
		if !strings.Contains(response.Result.Message, want) {
			t.Errorf("lacks %q: %s", want, response.Result.Message)
		}
	}
	want := map[string]float64{"errors_total kind=api": 1, "decision_duration_seconds outcome=error": 1}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestTheNamespaceIsTheRequests(t *testing.T) {
	t.Parallel()
	for name, metadata := range map[string]string{
		"with generateName":                  `{"generateName": "p-"}`,
		"though the object names another":    `{"name": "p", "namespace": "trusted"}`,
		"though the object's is null":        `{"namespace": null}`,
		"and the object may have no name":    `{}`,
		"and labels without ours say little": `{"labels": {"app": "a"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			handler, _ := newHandler(t, func(o *Options) {
				inner := o.Namespaces
				o.Namespaces = lookup(func(ctx context.Context, name string) (*catalog.Namespace, error) {
					asked = append(asked, name)
					return inner.Namespace(ctx, name)
				})
			})
			request := create("untrusted", "")
			request.Name = ""
			request.Object.Raw = []byte(strings.Replace(string(request.Object.Raw), `{"name": "p"}`, metadata, 1))
			response := handler.Handle(t.Context(), request)
			if !response.Allowed || response.AuditAnnotations["runtime-class"] != "gvisor" || len(response.Patches) == 0 {
				t.Errorf("got %+v", response)
			}
			if diff := cmp.Diff([]string{"untrusted"}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// echo is a policy that answers what it was told about the request.
const echo = `{"action": "keep", "trust": "trusted", "reasons": [json.marshal(input.request)]}`

func TestThePolicyIsToldTheRequest(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, dryRun := range map[string]*bool{"dry run": &yes, "no dry run": &no, "not said": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, _ := newHandler(t, func(o *Options) {
				o.Router = answering(t, echo)
				o.Now = func() time.Time { return time.Date(2031, 2, 3, 23, 30, 0, 0, time.FixedZone("west", -3600)) }
			})
			request := create("trusted", "")
			request.DryRun = dryRun
			request.UserInfo = authenticationv1.UserInfo{Username: "alice", Groups: []string{"dev"}}
			response := handler.Handle(t.Context(), request)
			want := fmt.Sprintf(`{"date":"2031-02-04","dryRun":%t,"name":"p","namespace":"trusted","operation":"CREATE","subResource":"","userInfo":{"groups":["dev"],"username":"alice"}}`,
				dryRun != nil && *dryRun)
			if !response.Allowed {
				t.Fatalf("got %+v", response.Result)
			}
			if diff := cmp.Diff(want, response.AuditAnnotations["reason"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// slow takes seconds for a pod of the name p, and no time for the self-test pods.
const slow = `{"action": "keep", "trust": "trusted"} if {
	input.request.name == "p"
	count([1 | some i in numbers.range(1, 3000); some j in numbers.range(1, 3000); i == j]) > 0
} else := {"action": "keep", "trust": "trusted"}`

func TestADeadlineIsAnswered(t *testing.T) {
	t.Parallel()
	for namespace, allowed := range map[string]bool{"trusted": false, "unlabelled": true, "audited": true} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			handler, registry := newHandler(t, func(o *Options) {
				o.Router, o.Deadline = answering(t, slow), time.Millisecond
			})
			response := handler.Handle(t.Context(), create(namespace, ""))
			if response.Allowed != allowed || !allowed && response.Result.Code != 504 {
				t.Errorf("got %+v", response)
			}
			if warned := len(response.Warnings) > 0; warned != (namespace == "unlabelled") {
				t.Errorf("warnings %q", response.Warnings)
			}
			want := map[string]float64{"errors_total kind=deadline": 1, "policy_errors_total kind=timeout": 1, "decision_duration_seconds outcome=error": 1}
			if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALookUpEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t, func(o *Options) {
		o.Deadline = time.Millisecond
		o.Namespaces = lookup(func(ctx context.Context, _ string) (*catalog.Namespace, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	if response := handler.Handle(t.Context(), create("untrusted", "")); response.Allowed || response.Result.Code != 504 {
		t.Errorf("got %+v", response)
	}
}

// TestACancelledRequestIsAnswered: the server cancels what is in flight when it stops.
func TestACancelledRequestIsAnswered(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if response := handler.Handle(ctx, create("untrusted", "")); !response.Allowed || len(response.Patches) == 0 {
		t.Errorf("got %+v", response)
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	handler, registry := newHandler(t)
	for _, request := range []admission.Request{
		create("untrusted", ""), create("untrusted", ""), create("untrusted", `"hostNetwork": true`), create("untrusted", `"runtimeClassName": "gvisor"`),
		create("unlabelled", ""), create("trusted", ""), create("nowhere", ""), create("untrusted", `"nodeSelector": 7`),
	} {
		handler.Handle(t.Context(), request)
	}
	handler.Metrics.PolicyLoaded("r1")
	handler.Metrics.PolicyLoaded("r2")
	handler.Metrics.ExceptionsInForce([]policies.Exception{{Name: "old", Until: "2026-01-31"}})
	handler.Metrics.ExceptionsInForce([]policies.Exception{{Name: "agent", Until: "2026-01-31"}})
	want := map[string]float64{
		"decisions_total action=route mode=enforce runtime_class=gvisor trust=untrusted": 2,
		"decisions_total action=deny mode=enforce runtime_class= trust=untrusted":        1,
		"decisions_total action=keep mode=enforce runtime_class=gvisor trust=untrusted":  1,
		"decisions_total action=route mode=warn runtime_class=gvisor trust=untrusted":    1,
		"decisions_total action=route mode=enforce runtime_class=crun trust=trusted":     1,
		"errors_total kind=api":                   1,
		"errors_total kind=undecodable":           1,
		"decision_duration_seconds outcome=route": 4,
		"decision_duration_seconds outcome=deny":  1,
		"decision_duration_seconds outcome=keep":  1,
		"decision_duration_seconds outcome=error": 2,
		"policy_info revision=r2":                 1,
		// The day itself counts.
		"exception_expiry_timestamp_seconds exception=agent": float64(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).Unix()),
	}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestPolicyErrorsAreCountedByKind(t *testing.T) {
	t.Parallel()
	// Each is right for the self-test pods, which are called selftest.
	guarded := func(answer string) string {
		return answer + ` if input.request.name == "p" else := {"action": "keep", "trust": "trusted"}`
	}
	for kind, decision := range map[policies.FaultKind]string{
		policies.Undefined: `{"action": "keep", "trust": "trusted"} if input.request.name != "p"`,
		policies.Failed:    guarded(`{"action": "keep", "trust": "trusted", "reasons": [sprintf("%d", [to_number(input.request.name)])]}`),
		policies.BadShape:  guarded(`{"action": "jump", "trust": "trusted"}`),
		policies.Unsafe:    guarded(`{"action": "keep", "trust": "vip"}`),
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			handler, registry := newHandler(t, func(o *Options) { o.Router = answering(t, decision) })
			response := handler.Handle(t.Context(), create("trusted", ""))
			if response.Allowed || response.Result.Code != 500 || !strings.Contains(response.Result.Message, "policy error ("+string(kind)+")") {
				t.Errorf("got %+v", response.Result)
			}
			want := map[string]float64{"errors_total kind=policy": 1, "policy_errors_total kind=" + string(kind): 1, "decision_duration_seconds outcome=error": 1}
			if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoLabelCarriesATenantsName: the number of series is not the tenants' to choose.
func TestNoLabelCarriesATenantsName(t *testing.T) {
	t.Parallel()
	handler, registry := newHandler(t, func(o *Options) {
		o.Namespaces = lookup(func(_ context.Context, name string) (*catalog.Namespace, error) {
			if strings.HasSuffix(name, "broken") {
				return nil, errors.New(name)
			}
			return &catalog.Namespace{Name: name, Labels: map[string]string{catalog.LabelTrust: "tenant-level", catalog.LabelMode: "tenant-mode", catalog.LabelProfile: "tenant-profile"}}, nil
		})
	})
	for _, namespace := range []string{"tenant-ns", "tenant-broken"} {
		for _, spec := range []string{"", `"hostNetwork": true`, `"runtimeClassName": "tenant-class"`, `"nodeSelector": {"tenant-key": 7}`} {
			request := create(namespace, spec)
			request.Name = "tenant-pod"
			request.UserInfo.Username = "tenant-user"
			request.Object.Raw = []byte(strings.Replace(string(request.Object.Raw), `{"name": "p"}`,
				`{"name": "tenant-pod", "labels": {"runtimeclass-router.io/trust": "tenant-trust"}}`, 1))
			handler.Handle(t.Context(), request)
		}
	}
	samples := counted(t, registry)
	if len(samples) == 0 {
		t.Error("nothing was counted")
	}
	for sample := range samples {
		if strings.Contains(sample, "tenant") {
			t.Error(sample)
		}
	}
}

// observed keeps what an observer is told.
type observed []*Decision

func (o *observed) Decided(_ context.Context, d *Decision) { *o = append(*o, d) }

// TestObserversAreTold, all of them, and see the answer.
func TestObserversAreTold(t *testing.T) {
	t.Parallel()
	var first, second observed
	handler, _ := newHandler(t, func(o *Options) { o.Observers = []Observer{&first, &second} })
	for _, namespace := range []string{"untrusted", "untrusted", "nowhere"} {
		response := handler.Handle(t.Context(), create(namespace, ""))
		d := first[len(first)-1]
		if diff := cmp.Diff(response, *d.Response); diff != "" || response.AuditAnnotations["decision-id"] != "u-1" {
			t.Errorf("another answer, or no decision-id: %v\n%s", response.AuditAnnotations, diff)
		}
		if failed := namespace == "nowhere"; (d.Err != nil) != failed || (d.Input.Pod == nil) != failed || (d.ErrorKind() == "api") != failed ||
			d.Path != MutatePodPath || d.Request.Namespace != namespace || d.Elapsed <= 0 || d.Started.IsZero() {
			t.Errorf("told of %+v", d)
		}
	}
	if len(first) != 3 || len(second) != 3 || first[0] != second[0] {
		t.Errorf("told of %d and %d decisions", len(first), len(second))
	}
	if first[0].Route.Remembered || !first[1].Route.Remembered {
		t.Error("the second of two copies is remembered, and not the first")
	}
	// What is no decision is nobody's business.
	request := create("untrusted", "")
	request.Operation = admissionv1.Update
	if handler.Handle(t.Context(), request); len(first) != 3 {
		t.Error("told of an update")
	}
}

// TestNoPodIsLogged: environment variables hold secrets.
func TestNoPodIsLogged(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{Verbosity: 9})
	handler, _ := newHandler(t, func(o *Options) { o.Log = log })
	advisor := NewWorkloadAdvisor(handler.Options)
	for _, namespace := range []string{"untrusted", "nowhere"} {
		request := create(namespace, "")
		request.Object.Raw = []byte(strings.Replace(string(request.Object.Raw), `"image": "i"`, `"image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}]`, 1))
		handler.Handle(t.Context(), request)
		request.Kind.Kind = "Pod"
		advisor.Handle(t.Context(), request)
	}
	all := strings.Join(lines, "\n")
	if len(lines) != 1 || !strings.Contains(all, `"requestID"="u-1"`) || !strings.Contains(all, "no advice") {
		t.Errorf("want a line for the advice that failed:\n%s", all)
	}
	if strings.Contains(all, "hunter2") || strings.Contains(all, "TOKEN") {
		t.Errorf("a pod was logged:\n%s", all)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	_, registry := newHandler(t)
	if _, err := NewMetrics(registry); err == nil {
		t.Error("a second registration passes in silence")
	}
}
