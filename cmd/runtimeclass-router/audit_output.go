package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
)

// write prints the report, or writes it into the cluster.
func (o *auditOptions) write(ctx context.Context, out io.Writer, reports *audit.Reports, report *audit.Report) error {
	switch {
	case reports != nil:
		written, err := reports.Write(ctx, report, o.namespace)
		for _, name := range written {
			fmt.Fprintln(out, name)
		}
		if err != nil {
			return err
		}
	case o.output == "json":
		return encodeJSON(out, report)
	default:
		writeFindings(out, report)
	}
	_, err := fmt.Fprintln(out, summary(report))
	return err
}

func writeFindings(out io.Writer, report *audit.Report) {
	if len(report.Findings) == 0 {
		return
	}
	const why = tableWidth - 15 - 12 - 22 - 4 - 12 - 15 - 2*7
	t := newTable(out, table.Row{"finding", "namespace", "owner", "pods", "runs", "today", "why"}, 15, 12, 22, 4, 12, 15, why)
	for i := range report.Findings {
		f := &report.Findings[i]
		finding := string(f.Kind)
		if !f.Enforced {
			finding += fmt.Sprintf(" (%s)", f.Mode)
		}
		t.AppendRow(table.Row{finding, f.Namespace, f.Owner, f.Pods, cmp.Or(f.RuntimeClassName, "node's default"), f.Today, f.Reason})
	}
	t.Render()
}

// summary is the last line of the table.
func summary(report *audit.Report) string {
	var found, left []string
	all := 0
	for _, kind := range audit.Kinds() {
		all += report.Found[kind]
		found = append(found, fmt.Sprintf("%d %s", report.Found[kind], kind))
	}
	for _, why := range []string{audit.Exempt, audit.Mirror, audit.Finished, audit.Unborn} {
		if n := report.LeftOut[why]; n > 0 {
			left = append(left, fmt.Sprintf("%d %s", n, why))
		}
	}
	line := fmt.Sprintf("%d of %d pods: %s", all, report.Pods, strings.Join(found, ", "))
	if len(left) > 0 {
		line += "; left out: " + strings.Join(left, ", ")
	}
	return line
}
