package main

import (
	_ "embed"
	"io"
	"strings"
	"text/template"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
)

//go:embed page.md.tmpl
var pageSource string

// page is what the template reads.
type page struct {
	Kubernetes string
	Rows       []row // by kind, in the order of conformance.Kinds
	Total      row
	Pods       []pod
}

// row counts the right verdicts on the pods of one kind.
type row struct {
	Kind  string
	Pods  int
	Right [columns]int
}

// pod is a line about one shape.
type pod struct {
	Name, Kind, Allowed string
	Verdicts            [columns]string
}

func newPage(shapes []conformance.Shape, classes *catalog.Catalog, m *measurement) *page {
	p := &page{Kubernetes: strings.TrimPrefix(m.kubernetes, "v")}
	for _, kind := range conformance.Kinds {
		r := row{Kind: kind}
		for i := range shapes {
			s := &shapes[i]
			if s.Kind != kind {
				continue
			}
			line := pod{Name: s.Name, Kind: kind, Allowed: allowed(s.Expect.Untrusted)}
			for column := range columns {
				outcome := &m.outcomes[column][i]
				right := outcome.Allowed(s.Expect.Untrusted, classes)
				line.Verdicts[column] = verdict(outcome, right)
				if right {
					r.Right[column]++
				}
			}
			r.Pods++
			p.Pods = append(p.Pods, line)
		}
		if r.Pods == 0 {
			continue // only reviews are of that kind
		}
		p.Rows = append(p.Rows, r)
		p.Total.Pods += r.Pods
		for column := range columns {
			p.Total.Right[column] += r.Right[column]
		}
	}
	return p
}

func (p *page) write(w io.Writer) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// verdict says what became of a pod; what is not right is marked.
func verdict(o *conformance.Outcome, right bool) string {
	said := o.String()
	if o.Denied && !strings.Contains(o.Message, "runtimeclass-router: ") {
		said = "refused by Kubernetes"
	}
	if !right {
		said += " ✗"
	}
	return said
}

func allowed(verdicts []conformance.Verdict) string {
	var words []string
	for _, v := range verdicts {
		words = append(words, strings.TrimPrefix(string(v), "route:"))
	}
	return strings.Join(words, " or ")
}
