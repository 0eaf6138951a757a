package page

import (
	"bytes"
	"fmt"
	"image/color"
	"time"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// Colours that are told apart in print, and by those who see no red and green.
var (
	blue = color.RGBA{R: 0, G: 114, B: 178, A: 255}
	grey = color.RGBA{R: 140, G: 140, B: 140, A: 255}
)

// plot draws what there is, by file name.
func plot(r *results.Results) (map[string][]byte, error) {
	plots := map[string][]byte{}
	for _, c := range r.Growth {
		measured := &results.Curve{Name: c.Name, Title: c.Title}
		for _, p := range c.Points {
			if p.Fault == "" {
				measured.Points = append(measured.Points, p)
			}
		}
		if len(measured.Points) < 2 {
			continue
		}
		drawn, err := curve(measured)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", c.Title, err)
		}
		plots[c.Name+".svg"] = drawn
	}
	if len(r.Through) > 0 {
		drawn, err := bars(r.Through)
		if err != nil {
			return nil, fmt.Errorf("plot the variants: %w", err)
		}
		plots["variants.svg"] = drawn
	}
	return plots, nil
}

// curve draws a new decision and the reference.
func curve(c *results.Curve) ([]byte, error) {
	p := gonum.New()
	p.X.Label.Text, p.Y.Label.Text = c.Title, "p50, ms"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	if first, last := c.Points[0].Size, c.Points[len(c.Points)-1].Size; first > 0 && last >= 100*first {
		p.X.Scale = gonum.LogScale{}
		var sizes gonum.ConstantTicks
		for _, point := range c.Points {
			sizes = append(sizes, gonum.Tick{Value: float64(point.Size), Label: results.Thousands(point.Size)})
		}
		p.X.Tick.Marker = sizes
	}
	for _, line := range []struct {
		name  string
		color color.Color
		of    func(*results.Point) time.Duration
	}{
		{"router, new decision", blue, func(p *results.Point) time.Duration { return p.P50 }},
		{"no-op webhook", grey, func(p *results.Point) time.Duration { return p.Reference }},
	} {
		points := make(plotter.XYs, len(c.Points))
		for i := range c.Points {
			points[i].X = float64(c.Points[i].Size)
			points[i].Y = float64(line.of(&c.Points[i])) / float64(time.Millisecond)
			p.Y.Max = max(p.Y.Max, 1.3*points[i].Y) // room for the legend
		}
		lines, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		lines.Color, dots.Color, dots.Shape = line.color, line.color, draw.CircleGlyph{}
		lines.Width = vg.Points(1.5)
		p.Add(lines, dots)
		p.Legend.Add(line.name, lines, dots)
	}
	return svg(p, 12*vg.Centimeter, 8*vg.Centimeter)
}

// bars draws the variants' p50 with one client.
func bars(variants []*results.Variant) ([]byte, error) {
	p := gonum.New()
	p.X.Label.Text = "p50 of creating a pod, one client, ms"
	p.X.Min = 0
	var values plotter.Values
	var names []string
	for i := len(variants) - 1; i >= 0; i-- { // the first one on top
		values = append(values, float64(results.MedianOf(variants[i].Samples[1], p50))/float64(time.Millisecond))
		names = append(names, variants[i].Title)
	}
	chart, err := plotter.NewBarChart(values, vg.Points(10))
	if err != nil {
		return nil, err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, blue, 0
	p.Add(chart)
	p.NominalY(names...)
	return svg(p, 20*vg.Centimeter, vg.Length(len(variants))*0.7*vg.Centimeter+2*vg.Centimeter)
}

func svg(p *gonum.Plot, width, height vg.Length) ([]byte, error) {
	writer, err := p.WriterTo(width, height, "svg")
	if err != nil {
		return nil, err
	}
	var drawn bytes.Buffer
	_, err = writer.WriteTo(&drawn)
	return drawn.Bytes(), err
}
