package shadow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// metrics are a prometheus.Collector.
type metrics struct {
	decisions   *prometheus.CounterVec
	differences *prometheus.CounterVec
	loaded      prometheus.Gauge

	same, outdated, dropped, failed prometheus.Counter
}

func newMetrics() metrics {
	m := metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_shadow_decisions_total",
			Help: "Decisions that were held against the second policy, by outcome: same, different, denied (newly), outdated (one of the two had gone on to another catalog or configuration), dropped (too many at once), or failed (no policy could be asked).",
		}, []string{"outcome"}),
		differences: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_shadow_differences_total",
			Help: "Decisions that the second policy would make otherwise, by the outcome in force and the other.",
		}, []string{"from", "to"}),
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "runtimeclass_router_shadow_loaded",
			Help: "1 while there is a second policy.",
		}),
	}
	for outcome, counter := range map[string]*prometheus.Counter{"same": &m.same, "outdated": &m.outdated, "dropped": &m.dropped, "failed": &m.failed} {
		*counter = m.decisions.WithLabelValues(outcome)
	}
	return m
}

// differ counts a change, and returns the counter of its kind.
func (m *metrics) differ(c survey.Change) prometheus.Counter {
	m.differences.WithLabelValues(c.From, c.To).Inc()
	if c.NewlyDenied {
		return m.decisions.WithLabelValues("denied")
	}
	return m.decisions.WithLabelValues("different")
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	m.decisions.Describe(out)
	m.differences.Describe(out)
	m.loaded.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.decisions.Collect(out)
	m.differences.Collect(out)
	m.loaded.Collect(out)
}
