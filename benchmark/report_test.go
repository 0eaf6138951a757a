package benchmark

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// take measures every sample of a plan by a function.
func take(p *Plan, of func(*Sample) Measurement) *Results {
	r := &Results{GivenUp: map[string]error{}}
	for _, phase := range p.Phases {
		for i := range phase.Samples {
			m := of(&phase.Samples[i])
			m.Sample = phase.Samples[i]
			r.Measurements = append(r.Measurements, m)
		}
	}
	return r
}

// The machine is three times slower from the third round on, and slow takes twice as long
// as fast: the ratio is 2 in each round, whatever the percentiles say.
func TestReport(t *testing.T) {
	t.Parallel()
	o := valid()
	o.Pods, o.Runs = 4, 0
	p := planOf(t, o)
	results := take(p, func(s *Sample) Measurement {
		taken := time.Second
		if s.Class == "slow" {
			taken *= 2
		}
		if s.Round >= 2 {
			taken *= 3
		}
		m := Measurement{Running: taken / 2, Done: taken}
		switch {
		case s.Warmup:
			m.Running, m.Done = time.Hour, time.Hour
		case s.Class == "fast" && s.Round == 0:
			m.Running = 0 // not seen
		case s.Class == "slow" && s.Round == 3:
			m = Measurement{Err: errors.New("exit code 1")}
		}
		return m
	})
	report := NewReport(p, results, map[string]error{"other": errors.New("replaced")})
	want := []Measure{
		{CreateToRunning, []Figures{
			{Class: "fast", Count: 3, Of: 4, P50: 1.5, P90: 1.5, P99: 1.5, Ratio: 1},
			{Class: "slow", Count: 3, Of: 4, P50: 1, P90: 3, P99: 3, Ratio: 2},
		}},
		{CreateToDone, []Figures{
			{Class: "fast", Count: 4, Of: 4, P50: 1, P90: 3, P99: 3, Ratio: 1},
			{Class: "slow", Count: 3, Of: 4, P50: 2, P90: 6, P99: 6, Ratio: 2},
		}},
	}
	if diff := cmp.Diff(want, report.Measures); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]NotMeasured{{"other", "replaced"}}, report.NotMeasured); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`runtime class fast: 1 of its pods were first seen when they had ended; they do not count for "create to running"`,
		`runtime class slow: 1 of its pods failed and do not count, the first was benchmark-run-8: exit code 1`,
	}, report.Notes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(report.Pods) != p.Total() {
		t.Errorf("%d pods, want %d", len(report.Pods), p.Total())
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for _, test := range []struct {
		values []int
		share  float64
		want   int
	}{
		{nil, 0.5, 0}, {[]int{7}, 0.5, 7}, {[]int{7}, 0.99, 7}, {[]int{2, 1}, 0.5, 1}, {[]int{3, 1, 2}, 0.5, 2},
		{hundred, 0.5, 50}, {hundred, 0.9, 90}, {hundred, 0.99, 99},
	} {
		if got := quantile(test.values, test.share); got != test.want {
			t.Errorf("quantile %v of %v: %d, want %d", test.share, test.values, got, test.want)
		}
	}
}

// A chart is well-formed, says every figure as text, and is drawn of nothing too.
func TestChart(t *testing.T) {
	t.Parallel()
	o := valid()
	p := planOf(t, o)
	for name, results := range map[string]*Results{
		"whole": take(p, func(s *Sample) Measurement {
			return Measurement{Running: time.Second, Done: 2 * time.Second, Elapsed: 3 * time.Second}
		}),
		"nothing": {},
	} {
		report := NewReport(p, results, nil)
		report.Measures[0].Name = "<&>"
		var out bytes.Buffer
		if err := report.WriteSVG(&out); err != nil {
			t.Fatal(err)
		}
		drawn := out.String()
		for decoder := xml.NewDecoder(&out); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, drawn)
			}
		}
		for _, m := range report.Measures {
			for _, f := range m.Classes {
				if strings.Count(drawn, f.String()) < 2 {
					t.Errorf("%s: the text and the description lack %s", name, &f)
				}
			}
		}
		for _, want := range []string{`role="img"`, "prefers-color-scheme: dark", "&lt;&amp;&gt;"} {
			if !strings.Contains(drawn, want) {
				t.Errorf("%s: %s is missing", name, want)
			}
		}
	}
}
