package decisionlog

import "github.com/prometheus/client_golang/prometheus"

// metrics are a prometheus.Collector.
type metrics struct {
	entries  *prometheus.CounterVec
	failures prometheus.Counter
}

// counts are those of one sink. All of them are there from the start.
type counts struct{ written, dropped, repeated prometheus.Counter }

func newMetrics() metrics {
	return metrics{
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_decision_log_entries_total",
			Help: "Decisions that were told, by sink (stdout, upload or events) and outcome: written, dropped because too much waited or nobody took it, or, for events, repeated within a minute.",
		}, []string{"sink", "outcome"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "runtimeclass_router_decision_log_upload_failures_total",
			Help: "Uploads of decisions that failed; most are tried again.",
		}),
	}
}

func (m *metrics) counts(sink string) counts {
	c := counts{written: m.entries.WithLabelValues(sink, "written"), dropped: m.entries.WithLabelValues(sink, "dropped")}
	if sink == "events" {
		c.repeated = m.entries.WithLabelValues(sink, "repeated")
	}
	return c
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	m.entries.Describe(out)
	m.failures.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.entries.Collect(out)
	m.failures.Collect(out)
}
