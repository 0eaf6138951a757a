package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

func TestPodHasItsSize(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(benchPod())
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 7000 || len(raw) > 8000 {
		t.Errorf("%d bytes, want 7 to 8 KB", len(raw))
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick", "-rounds", "3", "-stages", "burst,growth"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Rounds != 3 || o.Replicas != 20 || !o.stages["burst"] || o.stages["through"] {
		t.Errorf("%+v", o)
	}
	for flags, fault := range map[string]string{
		"-rounds 0": "-rounds: 0", "-stages all": `there is no "all"`, "more": `unexpected argument "more"`,
	} {
		if _, err := parse(strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v, want %s", flags, err, fault)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	got, err := parseCounts(`# HELP runtimeclass_router_decisions_total Decisions on pods.
# TYPE runtimeclass_router_decisions_total counter
runtimeclass_router_decisions_total{action="route",mode="enforce"} 3
runtimeclass_router_decisions_total{action="keep",mode="enforce"} 2
runtimeclass_router_validations_total{resource="pods"} 4
runtimeclass_router_evaluations_total{source="evaluated"} 1
runtimeclass_router_evaluations_total{source="remembered"} 1.2e+01
go_goroutines 9
`)
	if err != nil {
		t.Fatal(err)
	}
	want := counts{decisions: 5, validations: 4, evaluated: 1, remembered: 12, counted: true}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	answer := func(rest, patch string) []byte {
		if patch != "" {
			rest += fmt.Sprintf(`,"patchType":"JSONPatch","patch":%q`, base64.StdEncoding.EncodeToString([]byte(patch)))
		}
		return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u",%s}}`, rest)
	}
	const (
		allowed    = `"allowed":true`
		class      = `{"op":"add","path":"/spec/runtimeClassName","value":"gvisor"}`
		selector   = `{"op":"add","path":"/spec/nodeSelector/example.com~1pool","value":"gvisor"}`
		toleration = `{"op":"add","path":"/spec/tolerations/-","value":{"key":"example.com/sandbox"}}`
	)
	for _, test := range []struct {
		said   []byte
		routed bool
		fault  string
	}{
		{answer(allowed, ""), false, ""},
		{answer(allowed, "["+class+","+selector+","+toleration+"]"), true, ""},
		{answer(allowed, "["+class+"]"), false, "where none is due"},
		{answer(allowed, ""), true, "read the patch"},
		{answer(allowed, "["+selector+","+toleration+"]"), true, "no patch to gvisor"},
		{answer(allowed, "["+class+","+toleration+"]"), true, "node selector"},
		{answer(allowed, "["+class+","+selector+"]"), true, "tolerations"},
		{answer(`"allowed":false`, ""), false, "refused"},
		{[]byte("nothing"), false, "read the answer"},
		{[]byte("{}"), false, "no response"},
	} {
		err := checkAnswer(test.said, test.routed)
		if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
			t.Errorf("%s: %v, want %q", test.said, err, test.fault)
		}
	}
}

// TestReviewsDiffer: copies in the uid and the token volume's name alone, and changed
// ones in what the policy reads.
func TestReviewsDiffer(t *testing.T) {
	t.Parallel()
	r, err := newReview([]byte(`{"request":{"uid":"0a","object":{"metadata":{"labels":{"app":"shop"}},` +
		`"spec":{"volumes":[{"name":"kube-api-access-abcde"}],"tolerations":[{"key":"example.com/team-shop"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"request":{"uid":"00000007-0000-4000-8000-000000000007","object":{"metadata":{"labels":{"app":"shop"}},`+
		`"spec":{"volumes":[{"name":"kube-api-access-00007"}],"tolerations":[{"key":"example.com/team-shop"}]}}}}`, string(r.copied(7))); diff != "" {
		t.Error(diff)
	}
	if changed := string(r.changed(7)); !strings.Contains(changed, `[{"key":"example.com/team-7"}]`) {
		t.Error(changed)
	}
}

func TestDriveMakesEachCall(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	l, err := drive(t.Context(), 100, 8, func(context.Context) (time.Duration, error) {
		return time.Duration(calls.Add(1)), nil
	})
	if err != nil || calls.Load() != 100 || len(l.latencies) != 100 || results.Quantile(l.latencies, 1) != 100 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestDriveEndsAtAnError(t *testing.T) {
	t.Parallel()
	wrong := errors.New("a wrong answer")
	var calls atomic.Int64
	_, err := drive(t.Context(), 1000, 4, func(context.Context) (time.Duration, error) {
		if calls.Add(1) >= 10 {
			return 0, wrong
		}
		return 1, nil
	})
	if !errors.Is(err, wrong) || calls.Load() > 20 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestTopOfAProfile(t *testing.T) {
	t.Parallel()
	got, err := parseTop(`File: webhook.test
Showing nodes accounting for 5s, 100% of 5s total
      flat  flat%   sum%        cum   cum%
         0     0%     0%      4.9s 98.00%  testing.(*B).runN
     0.50s 10.00% 10.00%         2s 40.00%  ` + module + `/policies.(*Engine).Decide
         0     0% 10.00%         1s 20.00%  encoding/json.Unmarshal (inline)
     0.25s  5.00% 15.00%      0.25s  5.00%  ` + module + `/policies.watched[go.shape.struct { Action a/b.Action }].func1
     0.10s  2.00% 17.00%      0.10s  2.00%  memeqbody
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []results.Function{
		{Name: "testing.(*B).runN", Cumulative: 98}, {Name: "policies.(*Engine).Decide", Flat: 10, Cumulative: 40},
		{Name: "encoding/json.Unmarshal", Cumulative: 20}, {Name: "policies.watched[...].func1", Flat: 5, Cumulative: 5}, {Name: "memeqbody", Flat: 2, Cumulative: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]results.Function{{Name: "policies", Flat: 15}, {Name: "runtime", Flat: 2}}, byPackage(got)); diff != "" {
		t.Error(diff)
	}
}
