package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
)

// benchWriters are the formats of --output.
var benchWriters = map[string]func(io.Writer, *benchmark.Report) error{
	"table": writeBenchTable,
	"json":  writeBenchJSON,
	"svg":   func(out io.Writer, r *benchmark.Report) error { return r.WriteSVG(out) },
}

func writeBenchTable(out io.Writer, r *benchmark.Report) error {
	t := newTable(out, table.Row{"measure", "class", "pods", "p50", "p90", "p99", "to " + r.Reference})
	for _, m := range r.Measures {
		name := m.Name
		for _, f := range m.Classes {
			t.AppendRow(append(table.Row{name, f.Class}, benchCells(&f)...))
			name = ""
		}
	}
	t.Render()
	return nil
}

func benchCells(f *benchmark.Figures) table.Row {
	if f.Count == 0 {
		return table.Row{fmt.Sprintf("0 of %d", f.Of), "-", "-", "-", "-"}
	}
	second := func(s float64) string { return fmt.Sprintf("%.2f s", s) }
	ratio := "-"
	if f.Ratio > 0 {
		ratio = fmt.Sprintf("%.2f", f.Ratio)
	}
	return table.Row{fmt.Sprintf("%d of %d", f.Count, f.Of), second(f.P50), second(f.P90), second(f.P99), ratio}
}

func writeBenchJSON(out io.Writer, r *benchmark.Report) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// writePods prints one of each kind of pod, which differ by name only.
func writePods(out io.Writer, plan *benchmark.Plan) error {
	samples, counts := plan.Distinct()
	fmt.Fprintf(out, "# %d pods in all, at most %d at once\n", plan.Total(), plan.Parallel)
	for i := range samples {
		s := &samples[i]
		raw, err := yaml.Marshal(plan.Pod(s))
		if err != nil {
			return fmt.Errorf("encode pod %s: %w", s.Pod, err)
		}
		if _, err := fmt.Fprintf(out, "---\n# %s, %s: %d of these\n%s", s.Class, s.Workload.Name, counts[s.Pod], raw); err != nil {
			return err
		}
	}
	return nil
}
