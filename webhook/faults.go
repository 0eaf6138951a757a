package webhook

import "github.com/prometheus/client_golang/prometheus"

var faultsDesc = prometheus.NewDesc("runtimeclass_router_faults",
	"Faults that keep what was given from being in force, by what it is of: configuration, policy or source. The last good one is in force instead.",
	[]string{"of"}, nil)

// NewFaultCollector tells of how many faults there are now, by what they are of. A kind
// without a fault is reported as 0.
func NewFaultCollector(count func() map[string]int) prometheus.Collector {
	return faultCollector(count)
}

type faultCollector func() map[string]int

// Describe implements prometheus.Collector.
func (faultCollector) Describe(out chan<- *prometheus.Desc) { out <- faultsDesc }

// Collect implements prometheus.Collector.
func (c faultCollector) Collect(out chan<- prometheus.Metric) {
	for of, count := range c() {
		out <- prometheus.MustNewConstMetric(faultsDesc, prometheus.GaugeValue, float64(count), of)
	}
}
