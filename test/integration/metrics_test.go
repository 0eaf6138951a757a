package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Not parallel: the counters must be moved by this test alone.
func TestMetricsTellWhatWasDecided(t *testing.T) {
	enforced, warned := untrusted(t), newNamespace(t)
	before := counters(t)

	routed := enforced.admitted(newPod())
	enforced.admitted(newPod(class("kata-qemu")))
	wantDenied(t, enforced.create(newPod(hostNetwork)), http.StatusForbidden)
	wantDenied(t, enforced.create(newPod(conflict)), http.StatusInternalServerError)
	warned.admitted(newPod())
	warned.admitted(newPod(conflict))

	moved := map[string]float64{}
	for series, value := range counters(t) {
		isTime := strings.Contains(series, "_bucket{") || strings.Contains(series, "_sum{")
		isJudged := strings.HasPrefix(series, "runtimeclass_router_validations_total{") // another endpoint's
		// Both endpoints': which of them evaluates first, and what tests before this one left, is not told.
		isRemembered := strings.HasPrefix(series, "runtimeclass_router_evaluations_total{") || strings.HasPrefix(series, "runtimeclass_router_memory_")
		if delta := value - before[series]; delta != 0 && !isTime && !isJudged && !isRemembered {
			moved[series] = delta
		}
	}
	want := map[string]float64{
		`runtimeclass_router_decisions_total{action="route",mode="enforce",runtime_class="gvisor",trust="untrusted"}`:   1,
		`runtimeclass_router_decisions_total{action="keep",mode="enforce",runtime_class="kata-qemu",trust="untrusted"}`: 1,
		`runtimeclass_router_decisions_total{action="deny",mode="enforce",runtime_class="",trust="untrusted"}`:          1,
		`runtimeclass_router_decisions_total{action="route",mode="warn",runtime_class="gvisor",trust="untrusted"}`:      1,
		`runtimeclass_router_errors_total{kind="policy"}`:                                                               2,
		`runtimeclass_router_policy_errors_total{kind="failed"}`:                                                        2,
		`runtimeclass_router_decision_duration_seconds_count{outcome="route"}`:                                          2,
		`runtimeclass_router_decision_duration_seconds_count{outcome="keep"}`:                                           1,
		`runtimeclass_router_decision_duration_seconds_count{outcome="deny"}`:                                           1,
		`runtimeclass_router_decision_duration_seconds_count{outcome="error"}`:                                          2,
	}
	if diff := cmp.Diff(want, moved); diff != "" {
		t.Errorf("what the counters moved by (-want +got):\n%s", diff)
	}

	// The policy in force is the one that pods name.
	info := `runtimeclass_router_policy_info{revision="` + routed.Annotations[catalog.AnnotationPolicyRevision] + `"}`
	for series, value := range counters(t) {
		if strings.HasPrefix(series, "runtimeclass_router_policy_info") && (series != info || value != 1) {
			t.Errorf("%s %v, want %s 1 and no other", series, value, info)
		}
	}
	if _, ok := counters(t)[info]; !ok {
		t.Errorf("%s is missing", info)
	}
}
