package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// reasonWidth is what the other columns leave of the width.
const reasonWidth = tableWidth - 12 - 24 - 18 - 18 - 5 - 2*6

// note says what the reader of the report may not expect.
func (d *difference) note(out io.Writer, labels map[string]map[string]*string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case slices.Contains(d.exempt, name):
			fmt.Fprintf(out, "note: --set-label: namespace %s is exempt: the API server does not ask the webhook about its pods\n", name)
		case !d.met[name]:
			fmt.Fprintf(out, "note: --set-label: no pod or workload that was compared is in namespace %s\n", name)
		}
	}
	if d.replaced > 0 {
		fmt.Fprintf(out, "note: pods whose class the webhook replaced count as asking for none, since what they asked for is not recorded: %d\n", d.replaced)
	}
}

func writeDiff(out io.Writer, format string, report *diffReport) error {
	if format == "json" {
		return encodeJSON(out, report)
	}
	if len(report.Changes) > 0 {
		t := newTable(out, table.Row{"namespace", "owner", "pods", "from", "to", "why"}, 12, 24, 5, 18, 18, reasonWidth)
		for _, c := range report.Changes {
			t.AppendRow(table.Row{c.Namespace, c.Owner, c.Pods, c.From, c.To, c.Reason})
		}
		t.Render()
	}
	_, err := fmt.Fprintf(out, "%d of %d change their route, %d newly denied\n", report.Changed, report.Compared, report.NewlyDenied)
	return err
}
