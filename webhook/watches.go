package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// watchAge is by resource, of which there are a handful.
var watchAge = prometheus.NewDesc("runtimeclass_router_watch_age_seconds",
	"Time since a watch heard an event or a bookmark, by resource. The API server sends a bookmark about once a minute.",
	[]string{"resource"}, nil)

// NewWatchCollector tells how long ago each watch heard something.
func NewWatchCollector(ages func() map[string]time.Duration) prometheus.Collector {
	return watchCollector(ages)
}

type watchCollector func() map[string]time.Duration

// Describe implements prometheus.Collector.
func (watchCollector) Describe(out chan<- *prometheus.Desc) { out <- watchAge }

// Collect implements prometheus.Collector.
func (c watchCollector) Collect(out chan<- prometheus.Metric) {
	for resource, age := range c() {
		out <- prometheus.MustNewConstMetric(watchAge, prometheus.GaugeValue, age.Seconds(), resource)
	}
}
