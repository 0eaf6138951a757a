package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// memoryCollector reports what an engine remembers, when it is asked.
type memoryCollector struct {
	memory                       func() policies.Memory
	decisions, evictions, stored *prometheus.Desc
}

// NewMemoryCollector reports how many decisions were remembered and how many were worked
// out, by memory, which is [policies.Engine.Memory].
func NewMemoryCollector(memory func() policies.Memory) prometheus.Collector {
	return &memoryCollector{
		memory: memory,
		decisions: prometheus.NewDesc("runtimeclass_router_evaluations_total",
			"Decisions by where they came from: remembered, or evaluated by the policy. A policy that reads what differs from pod to pod is evaluated for each.",
			[]string{"source"}, nil),
		evictions: prometheus.NewDesc("runtimeclass_router_memory_evictions_total",
			"Remembered decisions that made room for others.", nil, nil),
		stored: prometheus.NewDesc("runtimeclass_router_memory_decisions",
			"Decisions that are remembered now.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *memoryCollector) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descriptions)
}

// Collect implements prometheus.Collector.
func (c *memoryCollector) Collect(metrics chan<- prometheus.Metric) {
	m := c.memory()
	metrics <- prometheus.MustNewConstMetric(c.decisions, prometheus.CounterValue, float64(m.Hits), "remembered")
	metrics <- prometheus.MustNewConstMetric(c.decisions, prometheus.CounterValue, float64(m.Misses), "evaluated")
	metrics <- prometheus.MustNewConstMetric(c.evictions, prometheus.CounterValue, float64(m.Evicted))
	metrics <- prometheus.MustNewConstMetric(c.stored, prometheus.GaugeValue, float64(m.Size))
}
