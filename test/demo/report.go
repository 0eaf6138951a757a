package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func report(out io.Writer, outcomes []*outcome) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Options.DrawBorder = false
	t.Style().Options.SeparateColumns = false
	t.AppendHeader(table.Row{"", "pod", "namespace", "trust", "runtime class", "node", "why"})
	for _, o := range outcomes {
		t.AppendRow(append(table.Row{mark(o)}, row(o)...))
	}
	t.Render()
	for _, o := range outcomes {
		for _, w := range o.warnings {
			fmt.Fprintf(out, "\nwarning for %s/%s\n%s\n", o.namespace, o.name, text.WrapSoft(w, 118))
		}
		if o.denial != "" {
			fmt.Fprintf(out, "\ndenied: %s/%s\n%s\n", o.namespace, o.name, text.WrapSoft(o.denial, 118))
		}
	}
	for _, o := range outcomes {
		if o.fault != "" {
			fmt.Fprintf(out, "\nNOT AS EXPECTED: %s/%s: %s\n", o.namespace, o.name, o.fault)
		}
	}
}

func mark(o *outcome) string {
	if o.fault != "" {
		return "FAIL"
	}
	return "ok"
}

// row is one line of the table; the width of the last column keeps it readable.
func row(o *outcome) table.Row {
	trust := cmp.Or(o.trust, "(no label)")
	if o.pod == nil {
		return table.Row{o.name, o.namespace, trust, "denied", "", "see below"}
	}
	said := o.pod.Annotations
	var why []string
	for _, reason := range strings.Split(cmp.Or(said[catalog.AnnotationReason], "nothing to change"), "; ") {
		why = append(why, text.WrapSoft(reason, 50))
	}
	return table.Row{
		o.name, o.namespace, cmp.Or(said[catalog.AnnotationTrust], trust),
		cmp.Or(ptr.Deref(o.pod.Spec.RuntimeClassName, ""), "(node's default)"),
		cmp.Or(o.pod.Spec.NodeName, "(waits)"), strings.Join(why, "\n"),
	}
}
