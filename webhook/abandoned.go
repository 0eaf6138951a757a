package webhook

import "github.com/prometheus/client_golang/prometheus"

// NewAbandonedCollector tells how many evaluations run on that nobody waits for.
func NewAbandonedCollector(count func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "runtimeclass_router_abandoned_evaluations",
		Help: "Evaluations of a policy that did not stop in their time and that nobody waits for any more. Each takes a processor until it ends.",
	}, func() float64 { return float64(count()) })
}
