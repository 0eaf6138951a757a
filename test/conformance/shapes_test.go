package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// inBoth runs a test for every shape in both namespaces. A shape with a namespace of its
// own is no business of the router's: the API server never sends it.
func inBoth(t *testing.T, reviews bool, test func(t *testing.T, s *Shape, namespace string)) {
	t.Helper()
	shapes, err := Shapes()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shapes {
		if s.Review != reviews || s.Namespace != "" {
			continue
		}
		for _, namespace := range []string{Untrusted, Trusted} {
			t.Run(s.Name+"/"+namespace, func(t *testing.T) {
				t.Parallel()
				test(t, &s, namespace)
			})
		}
	}
}

func TestPods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inBoth(t, false, func(t *testing.T, s *Shape, namespace string) {
		outcome, route := b.admit(t, namespace, s.Raw)
		check(t, b, s, namespace, &outcome)
		if outcome.Denied && strings.HasPrefix(outcome.Message, "runtimeclass-router:") {
			checkMessage(t, outcome.Message)
		}
		t.Logf("%s: %v", &outcome, route.Reasons)
	})
}

// TestPodsOfKubeSystem: whoever labels kube-system untrusted, or turns the webhook on
// for it, finds the CNI refused rather than in a sandbox.
func TestPodsOfKubeSystem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outcome, _ := b.admit(t, Untrusted, shape(t, "cilium-in-kube-system").Raw)
	if !outcome.Denied || !strings.Contains(outcome.Message, "spec.hostNetwork") {
		t.Errorf("%s: %s; want a denial that names spec.hostNetwork", &outcome, outcome.Message)
	}
}

func TestReviews(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inBoth(t, true, func(t *testing.T, s *Shape, namespace string) {
		b := &bench{router: b.router, catalog: b.catalog, namespaces: b.namespaces} // with a count of its own
		request := request(t, s, namespace)
		answer := webhook.NewHandler(b.options(t)).Handle(t.Context(), request)
		outcome := Outcome{Denied: !answer.Allowed, Patched: len(answer.Patches) > 0}
		if request.Operation == admissionv1.Create {
			var pod struct {
				Spec struct{ RuntimeClassName string }
			}
			request.Object.Raw = apply(t, request.Object.Raw, answer.Patches)
			if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
				t.Fatal(err)
			}
			outcome.Class = pod.Spec.RuntimeClassName
		}
		final := webhook.NewPodValidator(b.options(t)).Handle(t.Context(), request)
		if len(final.Patches) > 0 {
			t.Errorf("the validating endpoint patches: %v", final.Patches)
		}
		outcome.Denied = outcome.Denied || !final.Allowed
		check(t, b, s, namespace, &outcome)
		if looked := b.lookups.Load(); request.Operation == admissionv1.Update && looked > 0 {
			t.Errorf("an update was held up by %d look-ups", looked)
		}
	})
}

func request(t *testing.T, s *Shape, namespace string) admission.Request {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(s.In(namespace), &review); err != nil {
		t.Fatal(err)
	}
	if review.Request == nil || review.Request.Namespace != namespace {
		t.Fatalf("the review is not one of namespace %s: %+v", namespace, review.Request)
	}
	return admission.Request{AdmissionRequest: *review.Request}
}

func check(t *testing.T, b *bench, s *Shape, namespace string, outcome *Outcome) {
	t.Helper()
	if want := s.Expect.In(namespace); !outcome.Allowed(want, b.catalog) {
		t.Errorf("%s (patched: %t) is none of %v; %s", outcome, outcome.Patched, want, outcome.Message)
	}
}

// TestNumbers: the suite has not lost a shape on the way.
func TestNumbers(t *testing.T) {
	t.Parallel()
	shapes, err := Shapes()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, s := range shapes {
		switch {
		case s.Review:
			count["reviews"]++
		case s.Namespace != "":
			count["pods elsewhere"]++
		default:
			count["pods"]++
		}
	}
	if diff := cmp.Diff(map[string]int{"pods": 48, "pods elsewhere": 1, "reviews": 5}, count); diff != "" {
		t.Error(diff)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, test := range map[string]struct {
		outcome Outcome
		yes, no []Verdict
	}{
		"denied":          {Outcome{Denied: true, Asked: "gvisor", Class: "gvisor"}, []Verdict{Deny}, []Verdict{Keep, Skip, RouteGVisor}},
		"kept":            {Outcome{Asked: "gvisor", Class: "gvisor"}, []Verdict{Keep, Skip, RouteGVisor}, []Verdict{Deny, RouteKata, RouteCrun}},
		"kept, patched":   {Outcome{Asked: "gvisor", Class: "gvisor", Patched: true}, []Verdict{RouteGVisor}, []Verdict{Keep, Skip}},
		"untouched":       {Outcome{}, []Verdict{Skip}, []Verdict{Keep, Deny, RouteCrun, RouteGVisor, RouteKata}},
		"any Kata":        {Outcome{Class: "kata-fc", Patched: true}, []Verdict{RouteKata}, []Verdict{Skip, Keep, RouteGVisor}},
		"any gVisor":      {Outcome{Class: "gvisor-pool", Patched: true}, []Verdict{RouteGVisor}, []Verdict{RouteKata}},
		"replaced":        {Outcome{Asked: "nvidia", Class: "kata", Patched: true}, []Verdict{RouteKata}, []Verdict{Keep, Skip}},
		"some other one":  {Outcome{Class: "sysbox-runc", Patched: true}, nil, []Verdict{RouteCrun, RouteGVisor, RouteKata, Skip}},
		"one that is not": {Outcome{Class: "no-such-class", Patched: true}, nil, []Verdict{RouteCrun, RouteGVisor, RouteKata, Skip}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range test.yes {
				if !test.outcome.Allowed([]Verdict{v}, b.catalog) {
					t.Errorf("%+v is not %s", test.outcome, v)
				}
			}
			for _, v := range test.no {
				if test.outcome.Allowed([]Verdict{v}, b.catalog) {
					t.Errorf("%+v is %s", test.outcome, v)
				}
			}
		})
	}
}
