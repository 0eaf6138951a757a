package page

import (
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// throughRow is a line of the table of variants. Times are medians of rounds, ratios of
// pairs within a round.
type throughRow struct {
	Title                 string
	P50, P99              time.Duration
	ToNone, ToNoop, ToJob float64
	Rate8, Rate32         float64
	P998, P9932           time.Duration
	Webhook, APIServer    time.Duration
	Calls                 float64
}

func throughRows(r *results.Results) []throughRow {
	var rows []throughRow
	none, noop, job := r.Variant("none"), r.Variant("noop"), r.Variant("job")
	for _, v := range r.Through {
		one, eight, many := v.Samples[1], v.Samples[8], v.Samples[32]
		rows = append(rows, throughRow{
			Title:     v.Title,
			P50:       results.MedianOf(one, p50),
			P99:       results.MedianOf(one, p99),
			ToNone:    results.Ratio(one, none.Samples[1]),
			ToNoop:    results.Ratio(one, noop.Samples[1]),
			ToJob:     results.Ratio(one, job.Samples[1]),
			Rate8:     results.MedianOf(eight, perSecond),
			P998:      results.MedianOf(eight, p99),
			Rate32:    results.MedianOf(many, perSecond),
			P9932:     results.MedianOf(many, p99),
			Webhook:   results.MedianOf(eight, func(s *results.Sample) time.Duration { return s.Webhook }),
			APIServer: results.MedianOf(eight, func(s *results.Sample) time.Duration { return s.APIServer }),
			Calls:     results.MedianOf(eight, func(s *results.Sample) float64 { return s.Calls }),
		})
	}
	return rows
}

func p50(s *results.Sample) time.Duration { return s.P50 }
func p99(s *results.Sample) time.Duration { return s.P99 }
func perSecond(s *results.Sample) float64 { return s.Rate }

// straightRow is a line of the table of webhooks that are asked without an API server.
type straightRow struct {
	*results.Target
	P50, P99            time.Duration
	ToJob, ToController float64
	Rate, CPU           float64 // a second; seconds for a thousand
}

func straightRows(r *results.Results) []straightRow {
	var rows []straightRow
	job, controller := r.Target("job"), r.Target("noop-controllerruntime")
	for _, t := range r.Straight {
		rows = append(rows, straightRow{
			Target:       t,
			P50:          results.MedianOf(t.One, p50),
			P99:          results.MedianOf(t.One, p99),
			ToJob:        results.Ratio(t.One, job.One),
			ToController: results.Ratio(t.One, controller.One),
			Rate:         results.MedianOf(t.Many, perSecond),
			CPU:          cpuOfThousand(t),
		})
	}
	return rows
}

// cpuOfThousand is in seconds, over sixteen connections.
func cpuOfThousand(t *results.Target) float64 {
	return results.MedianOf(t.Many, func(s *results.Sample) time.Duration { return s.Webhook }).Seconds() * 1000
}

// burstRow is a line of the table of bursts.
type burstRow struct {
	Title string
	Pods  int
	Time  time.Duration
	ToJob float64
}

func burstRows(r *results.Results) []burstRow {
	var rows []burstRow
	job := r.BurstOf("job")
	for _, b := range r.Burst {
		rows = append(rows, burstRow{b.Title, b.Pods, results.Median(b.Elapsed), results.RatioOf(b.Elapsed, job.Elapsed)})
	}
	return rows
}

// growthTable is a curve in figures.
type growthTable struct {
	*results.Curve
	Rows []growthRow
}

type growthRow struct {
	results.Point
	Growth float64
}

func growthTables(r *results.Results) []growthTable {
	var tables []growthTable
	for _, c := range r.Growth {
		t := growthTable{Curve: c}
		for i := range c.Points {
			t.Rows = append(t.Rows, growthRow{c.Points[i], c.Growth(i)})
		}
		tables = append(tables, t)
	}
	return tables
}
