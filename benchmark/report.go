package benchmark

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The measures that every benchmark has beside its workloads, whose measures bear their
// names.
const (
	CreateToRunning = "create to running"
	CreateToDone    = "create to done"
)

// Report is what a benchmark found. Times are in seconds, with milliseconds.
type Report struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	// Reference is the class that ratios are to.
	Reference string    `json:"reference"`
	Measures  []Measure `json:"measures"`
	// NotMeasured are classes that were left out, or given up half-way.
	NotMeasured []NotMeasured `json:"notMeasured"`
	// Pods is each pod that was created, in the order of the plan.
	Pods []Pod `json:"pods"`
}

// Measure compares the classes in one thing.
type Measure struct {
	Name    string    `json:"name"`
	Classes []Figures `json:"classes"`
}

// Figures are of one class. A percentile is the smallest time that this share of the pods
// did not exceed, so the 99th of fewer than a hundred pods is the longest.
type Figures struct {
	Class string `json:"class"`
	// Count is how many pods were measured, of those that were planned.
	Count int     `json:"count"`
	Of    int     `json:"of"`
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P99   float64 `json:"p99Seconds"`
	// Ratio is the median of the ratios to the reference within each round, so that a
	// cluster that is slow for a while is slow for both; 0 where no round has both.
	Ratio float64 `json:"ratio"`
}

// NotMeasured is a class and why it is not, or not all, measured.
type NotMeasured struct {
	Class  string `json:"class"`
	Reason string `json:"reason"`
}

// Pod is one pod's times. Those that were not seen are 0.
type Pod struct {
	Name     string  `json:"name"`
	Class    string  `json:"class"`
	Workload string  `json:"workload"`
	Round    int     `json:"round"`
	Warmup   bool    `json:"warmup"`
	Node     string  `json:"node"`
	Running  float64 `json:"createToRunningSeconds"`
	Done     float64 `json:"createToDoneSeconds"`
	Elapsed  float64 `json:"elapsedSeconds"`
	Error    string  `json:"error,omitempty"`
}

// NewReport makes the report of what came of a plan. leftOut are classes that the plan
// does not have, each with the reason.
func NewReport(p *Plan, r *Results, leftOut map[string]error) *Report {
	report := &Report{Namespace: p.Namespace, Image: p.Image, Reference: p.Classes[0], NotMeasured: []NotMeasured{}, Pods: []Pod{}}
	if p.Pods > 0 {
		report.compare(p, r, CreateToRunning, Start, p.Pods, func(m *Measurement) time.Duration { return m.Running })
		report.compare(p, r, CreateToDone, Start, p.Pods, func(m *Measurement) time.Duration { return m.Done })
	}
	if p.Runs > 0 {
		for _, w := range append(builtin(), p.Workloads...) {
			report.compare(p, r, w.Name, w.Name, p.Runs, func(m *Measurement) time.Duration { return m.Elapsed })
		}
	}
	for _, reasons := range []map[string]error{leftOut, r.GivenUp} {
		for class, reason := range reasons {
			report.NotMeasured = append(report.NotMeasured, NotMeasured{class, reason.Error()})
		}
	}
	slices.SortFunc(report.NotMeasured, func(a, b NotMeasured) int { return cmp.Compare(a.Class, b.Class) })
	measured := map[string]*Measurement{}
	for i := range r.Measurements {
		measured[r.Measurements[i].Pod] = &r.Measurements[i]
	}
	for _, phase := range p.Phases {
		for _, s := range phase.Samples {
			if m := measured[s.Pod]; m != nil {
				report.Pods = append(report.Pods, m.pod())
			}
		}
	}
	return report
}

func (m *Measurement) pod() Pod {
	pod := Pod{
		Name: m.Pod, Class: m.Class, Workload: m.Workload.Name, Round: m.Round, Warmup: m.Warmup, Node: m.Node,
		Running: seconds(m.Running), Done: seconds(m.Done), Elapsed: seconds(m.Elapsed),
	}
	if m.Err != nil {
		pod.Error = m.Err.Error()
	}
	return pod
}

// compare adds a measure: of what is taken of the pods that ran a workload. A pod of which
// it is 0, since it was not seen, does not count.
func (r *Report) compare(p *Plan, results *Results, name, workload string, planned int, of func(*Measurement) time.Duration) {
	rounds := map[string]map[int]time.Duration{}
	for _, class := range p.Classes {
		rounds[class] = map[int]time.Duration{}
	}
	for i := range results.Measurements {
		m := &results.Measurements[i]
		if taken := of(m); taken > 0 && m.Err == nil && !m.Warmup && m.Workload.Name == workload {
			rounds[m.Class][m.Round] = taken
		}
	}
	measure := Measure{Name: name}
	for _, class := range p.Classes {
		var times []time.Duration
		var ratios []float64
		for round, taken := range rounds[class] {
			times = append(times, taken)
			if reference, ok := rounds[p.Classes[0]][round]; ok {
				ratios = append(ratios, float64(taken)/float64(reference))
			}
		}
		measure.Classes = append(measure.Classes, Figures{
			Class: class, Count: len(times), Of: planned,
			P50: seconds(quantile(times, 0.5)), P90: seconds(quantile(times, 0.9)), P99: seconds(quantile(times, 0.99)),
			Ratio: math.Round(quantile(ratios, 0.5)*1000) / 1000,
		})
	}
	r.Measures = append(r.Measures, measure)
}

// quantile is the smallest value that a share of the values do not exceed; 0 of none.
func quantile[T cmp.Ordered](values []T, share float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
