package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
)

// benchWriters are the formats of --output.
var benchWriters = map[string]func(io.Writer, *benchmark.Report) error{
	"table": writeBenchTable,
	"json":  writeBenchJSON,
	"svg":   func(out io.Writer, r *benchmark.Report) error { return r.WriteSVG(out) },
}

func writeBenchTable(out io.Writer, r *benchmark.Report) error {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Options.DrawBorder = false
	t.Style().Options.SeparateColumns = false
	t.AppendHeader(table.Row{"measure", "class", "pods", "p50", "p90", "p99", "to " + r.Reference})
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
