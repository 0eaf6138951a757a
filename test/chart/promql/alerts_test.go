package promql

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// now is when expressions are evaluated, after the time that the longest one looks back on.
const now = 30 * time.Hour

// TestAlerts evaluates each alert's expression over series that call for it, and over
// some that do not.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rules := alerts(t)
	const (
		// A day and six hours, a sample a minute.
		constant = "x1800"
		denials  = `runtimeclass_router_decisions_total{action="deny",mode="enforce",trust="untrusted"} `
		routed   = `runtimeclass_router_decisions_total{action="route",mode="enforce",trust="untrusted"} `
		warned   = `runtimeclass_router_decisions_total{action="route",mode="warn",trust="untrusted"} `
		trusted  = `runtimeclass_router_decisions_total{action="route",mode="enforce",trust="trusted"} `
		days     = 24 * time.Hour
	)
	at := func(after time.Duration) string { return fmt.Sprintf("%.0f+0%s", (now + after).Seconds(), constant) }
	for name, test := range map[string]struct{ fires, silent []string }{
		"RuntimeClassRouterAbsent": {
			fires:  []string{`runtimeclass_router_armed 1+0` + constant},
			silent: []string{`runtimeclass_router_policy_info{revision="a"} 1+0` + constant},
		},
		"RuntimeClassRouterNotArmed": {
			fires:  []string{`runtimeclass_router_armed{pod="a"} 0+0` + constant, `runtimeclass_router_armed{pod="b"} 0+0` + constant},
			silent: []string{`runtimeclass_router_armed{pod="a"} 0+0` + constant, `runtimeclass_router_armed{pod="b"} 1+0` + constant},
		},
		"RuntimeClassRouterCertificateExpires": {
			fires:  []string{`runtimeclass_router_certificate_expiry_timestamp_seconds{certificate="leaf"} ` + at(13*days)},
			silent: []string{`runtimeclass_router_certificate_expiry_timestamp_seconds{certificate="leaf"} ` + at(29*days)},
		},
		"RuntimeClassRouterPolicyErrors": {
			fires:  []string{`runtimeclass_router_policy_errors_total{kind="timeout"} 0+0x1795 1+1x5`},
			silent: []string{`runtimeclass_router_policy_errors_total{kind="timeout"} 7+0` + constant},
		},
		"RuntimeClassRouterErrors": {
			fires:  []string{`runtimeclass_router_errors_total{kind="deadline"} 0+1` + constant},
			silent: []string{`runtimeclass_router_errors_total{kind="busy"} 0+1` + constant, `runtimeclass_router_errors_total{kind="policy"} 0+1` + constant},
		},
		"RuntimeClassRouterStale": {
			fires:  []string{`runtimeclass_router_faults{of="source"} 1+0` + constant, `runtimeclass_router_faults{of="policy"} 0+0` + constant},
			silent: []string{`runtimeclass_router_faults{of="source"} 0+0` + constant},
		},
		"RuntimeClassRouterRevisionsDiffer": {
			fires:  []string{`runtimeclass_router_policy_info{pod="a",revision="1"} 1+0` + constant, `runtimeclass_router_policy_info{pod="b",revision="2"} 1+0` + constant},
			silent: []string{`runtimeclass_router_policy_info{pod="a",revision="1"} 1+0` + constant, `runtimeclass_router_policy_info{pod="b",revision="1"} 1+0` + constant},
		},
		"RuntimeClassRouterSlow": {
			fires: []string{
				`runtimeclass_router_decision_duration_seconds_bucket{le="1"} 0+1` + constant,
				`runtimeclass_router_decision_duration_seconds_bucket{le="2.5"} 0+10` + constant,
				`runtimeclass_router_decision_duration_seconds_bucket{le="+Inf"} 0+10` + constant,
			},
			silent: []string{
				`runtimeclass_router_decision_duration_seconds_bucket{le="0.1"} 0+10` + constant,
				`runtimeclass_router_decision_duration_seconds_bucket{le="+Inf"} 0+10` + constant,
			},
		},
		"RuntimeClassRouterDenialsJump": {
			fires:  []string{denials + `0+0x1785 2+2x15`},
			silent: []string{denials + `0+5` + constant},
		},
		"RuntimeClassRouterUntrustedNotSandboxed": {
			fires:  []string{warned + `0+1` + constant, routed + `9+0` + constant, trusted + `0+1` + constant},
			silent: []string{warned + `0+1` + constant, routed + `0+1` + constant},
		},
		"RuntimeClassRouterUndone": {
			fires:  []string{`runtimeclass_router_validations_total{resource="pods",mode="enforce",outcome="deny"} 0+1` + constant},
			silent: []string{`runtimeclass_router_validations_total{resource="pods",mode="enforce",outcome="route"} 0+1` + constant, `runtimeclass_router_validations_total{resource="workloads",mode="enforce",outcome="deny"} 0+1` + constant},
		},
		"RuntimeClassRouterBelowFloor": {
			fires:  []string{`runtimeclass_router_audit_pods{finding="below-floor",mode="enforce"} 3+0` + constant},
			silent: []string{`runtimeclass_router_audit_pods{finding="below-floor",mode="warn"} 3+0` + constant, `runtimeclass_router_audit_pods{finding="drifted",mode="enforce"} 3+0` + constant},
		},
		"RuntimeClassRouterExceptionExpires": {
			fires:  []string{`runtimeclass_router_exception_expiry_timestamp_seconds{exception="agent"} ` + at(13*days)},
			silent: []string{`runtimeclass_router_exception_expiry_timestamp_seconds{exception="agent"} ` + at(15*days)},
		},
		"RuntimeClassRouterWatchSilent": {
			fires:  []string{`runtimeclass_router_watch_age_seconds{resource="nodes"} 150+0` + constant},
			silent: []string{`runtimeclass_router_watch_age_seconds{resource="nodes"} 60+0` + constant},
		},
	} {
		rule, ok := rules[name]
		delete(rules, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !ok {
				t.Fatal("the chart has no such alert")
			}
			if !fires(t, rule.Expr.String(), test.fires) {
				t.Errorf("silent over %q", test.fires)
			}
			if fires(t, rule.Expr.String(), test.silent) {
				t.Errorf("fires over %q", test.silent)
			}
		})
	}
	if left := slices.Sorted(maps.Keys(rules)); len(left) > 0 {
		t.Errorf("alerts without a case: %v", left)
	}
}

// fires reports whether an expression has a result over the series.
func fires(t *testing.T, expr string, series []string) bool {
	t.Helper()
	load := "load 1m\n"
	for _, s := range series {
		load += "  " + s + "\n"
	}
	storage := promqltest.LoadedStorage(t, load)
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query, err := engine.NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(0, 0).Add(now))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	vector, ok := result.Value.(promql.Vector)
	if !ok {
		t.Fatalf("result is a %T", result.Value)
	}
	return len(vector) > 0
}
