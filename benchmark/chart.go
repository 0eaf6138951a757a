package benchmark

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/template"
)

// chartText is the SVG. It says all its figures as text, follows the reader's choice of
// a light or a dark page on a ground of its own, and uses colours that are told apart
// without red and green.
//
//go:embed chart.svg.tmpl
var chartText string

// The measures of the chart, in its own units.
const (
	chartBar    = 360 // what the longest time of a measure gets
	chartLabel  = 290 // for the figures
	chartRow    = 22
	chartLetter = 7.5 // wider than most
	chartMargin = 16
)

type chart struct {
	Title         string
	Width, Height int
	Panels        []panel
}

type panel struct {
	Title string
	Y     int
	Rows  []row
}

// row is a class: its bar reaches to the 50th percentile, its whisker from there to the
// 99th.
type row struct {
	Class, Figures     string
	Y, Left            int
	Bar, Whisker, Text int // ends of these, from the left edge
}

// WriteSVG draws the report: a panel for each measure, a bar for each class.
func (r *Report) WriteSVG(out io.Writer) error {
	parsed, err := template.New("chart").Funcs(template.FuncMap{
		"text": func(s string) (string, error) {
			var escaped strings.Builder
			err := xml.EscapeText(&escaped, []byte(s))
			return escaped.String(), err
		},
		"plus": func(a, b int) int { return a + b },
	}).Parse(chartText)
	if err != nil {
		return fmt.Errorf("parse the chart: %w", err)
	}
	if err := parsed.Execute(out, r.chart()); err != nil {
		return fmt.Errorf("draw the chart: %w", err)
	}
	return nil
}

func (r *Report) chart() chart {
	longest := 0
	for _, m := range r.Measures {
		for _, f := range m.Classes {
			longest = max(longest, len(f.Class))
		}
	}
	left := 2*chartMargin + int(chartLetter*float64(longest))
	c := chart{Title: "Runtime classes compared with " + r.Reference, Width: left + chartBar + chartLabel}
	y := chartMargin + chartRow
	for _, m := range r.Measures {
		p := panel{Title: m.Name, Y: y + chartRow}
		scale := 0.0
		for _, f := range m.Classes {
			scale = max(scale, f.P99)
		}
		y += 2 * chartRow
		for _, f := range m.Classes {
			reach := func(seconds float64) int {
				if scale == 0 {
					return left
				}
				return left + int(seconds/scale*chartBar+0.5)
			}
			p.Rows = append(p.Rows, row{
				Class: f.Class, Figures: f.String(), Y: y, Left: left,
				Bar: reach(f.P50), Whisker: reach(f.P99), Text: left + chartBar + chartMargin,
			})
			y += chartRow
		}
		c.Panels = append(c.Panels, p)
	}
	c.Height = y + chartMargin
	return c
}

// String is the figures in a line.
func (f *Figures) String() string {
	if f.Count == 0 {
		return "not measured"
	}
	s := fmt.Sprintf("p50 %.2f s, p99 %.2f s", f.P50, f.P99)
	if f.Ratio > 0 {
		s += fmt.Sprintf(", %.2f times", f.Ratio)
	}
	return s
}
