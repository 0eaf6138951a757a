package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

//go:embed page.md.tmpl
var source string

// report is what the page is made of.
type report struct {
	Machine           results.Machine
	Clients, Replicas int
	Windows           []*window
}

// What became of the pods, in all: the sums of the windows' counts.

// Created is one of these.
func (r *report) Created() int { return r.sum((*window).Created) }

// APIServer is one of these.
func (r *report) APIServer() int { return r.sum((*window).APIServer) }

// InFlight is one of these.
func (r *report) InFlight() int { return r.sum((*window).InFlight) }

// Late is one of these.
func (r *report) Late() int { return r.sum((*window).Late) }

// Ours is one of these.
func (r *report) Ours() int { return r.sum((*window).Ours) }

// Wrong is one of these.
func (r *report) Wrong() int { return r.sum((*window).Wrong) }

// Took is how long all of it took.
func (r *report) Took() (sum time.Duration) {
	for _, w := range r.Windows {
		sum += w.Took
	}
	return sum
}

func (r *report) sum(of func(*window) int) (sum int) {
	for _, w := range r.Windows {
		sum += of(w)
	}
	return sum
}

// faults are what fails the run.
func (r *report) faults() (errs []error) {
	for _, w := range r.Windows {
		if w.Ours()+w.Wrong() > 0 {
			errs = append(errs, fmt.Errorf("%s: %d pods were refused, and %d came out wrong:\n%s", w.Name, w.Ours(), w.Wrong(), strings.Join(w.messages(), "\n")))
		}
	}
	return errs
}

// render makes the page, and its table alone.
func render(r *report) (page []byte, table string, err error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"thousands": results.Thousands,
		"seconds":   func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) },
		"ms":        func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) },
	}).Parse(source)
	if err != nil {
		return nil, "", err
	}
	var whole, part bytes.Buffer
	if err := t.Execute(&whole, r); err != nil {
		return nil, "", err
	}
	err = t.ExecuteTemplate(&part, "table", r)
	return whole.Bytes(), strings.TrimLeft(part.String(), "\n"), err
}
