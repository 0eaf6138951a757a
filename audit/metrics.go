package audit

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell what the scans find. Of the replicas only the one that scans tells of pods.
type Metrics struct {
	pods      *prometheus.GaugeVec
	success   *prometheus.GaugeVec
	duration  *prometheus.GaugeVec
	errors    *prometheus.CounterVec
	evictions *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtimeclass_router_audit_pods",
			Help: "Running pods that the last scan looked at, by the mode of their namespace and what it found: below-floor, would-be-denied, policy-error, drifted or none.",
		}, []string{"finding", "mode"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtimeclass_router_audit_last_success_timestamp_seconds",
			Help: "When the last scan ended that saw every pod.",
		}, nil),
		duration: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtimeclass_router_audit_duration_seconds",
			Help: "How long that scan took.",
		}, nil),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_audit_errors_total",
			Help: "What a scan could not do, by what: scan (it ended early), pods (one could not be read) or reports.",
		}, []string{"of"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_audit_evictions_total",
			Help: "Attempts to evict a pod below its floor, by outcome: evicted, blocked (by a PodDisruptionBudget), futile (its owner's next pod was no better), gone or error.",
		}, []string{"outcome"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.pods, m.success, m.duration, m.errors, m.evictions} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// scanned tells of a scan that saw every pod.
func (m *Metrics) scanned(report *Report, took time.Duration, now time.Time) {
	m.pods.Reset()
	for of, n := range report.byMode {
		m.pods.WithLabelValues(string(of.kind), string(of.mode)).Set(float64(n))
	}
	m.success.WithLabelValues().Set(float64(now.Unix()))
	m.duration.WithLabelValues().Set(took.Seconds())
}

// forget is for a replica that does not scan any more: another tells what is so.
func (m *Metrics) forget() {
	m.pods.Reset()
	m.success.Reset()
	m.duration.Reset()
}
