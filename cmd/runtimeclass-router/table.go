package main

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// tableWidth is what tables are fitted into.
const tableWidth = 120

// newTable returns a table with that header. The first columns are wrapped at the widths that
// are given.
func newTable(out io.Writer, header table.Row, widths ...int) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Options.DrawBorder = false
	t.Style().Options.SeparateColumns = false
	t.Style().Size.WidthMax = tableWidth
	var columns []table.ColumnConfig
	for i, width := range widths {
		columns = append(columns, table.ColumnConfig{Number: i + 1, WidthMax: width, WidthMaxEnforcer: text.WrapSoft})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(header)
	return t
}
