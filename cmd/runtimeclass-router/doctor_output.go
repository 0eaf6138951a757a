package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/runtimeclass-router/runtimeclass-router/doctor"
)

// findingIndent is what the names of severity and check take of a line.
const findingIndent = 9 + 16

// writeDoctor writes a table of three columns. The next command stands on a line of its own
// and is never wrapped, so that it can be copied.
func writeDoctor(out io.Writer, findings []doctor.Finding) error {
	indent := strings.Repeat(" ", findingIndent)
	counts := map[doctor.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	for _, f := range gathered(findings) {
		said := strings.ReplaceAll(f.Message, "\n", "; ")
		if f.Object != "" {
			said = f.Object + ": " + said
		}
		lines := strings.Split(text.WrapSoft(said, tableWidth-findingIndent), "\n")
		for i, line := range lines {
			name := indent
			if i == 0 {
				name = fmt.Sprintf("%-8s %-15s ", f.Severity, f.Check)
			}
			if _, err := fmt.Fprintln(out, name+strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
		if f.Next != "" {
			if _, err := fmt.Fprintf(out, "%s$ %s\n", indent, f.Next); err != nil {
				return err
			}
		}
	}
	var sum []string
	for _, severity := range doctor.Severities() {
		sum = append(sum, fmt.Sprintf("%s %d", severity, counts[severity]))
	}
	slices.Reverse(sum)
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(sum, ", "))
	return err
}

// gathered makes one finding of those that lack the same.
func gathered(findings []doctor.Finding) []doctor.Finding {
	var rows []doctor.Finding
	checks := map[string][]string{}
	for _, f := range findings {
		if f.Severity == doctor.Unknown {
			first := len(checks[f.Message]) == 0
			checks[f.Message] = append(checks[f.Message], f.Check)
			if !first {
				continue
			}
		}
		rows = append(rows, f)
	}
	for i := range rows {
		if of := checks[rows[i].Message]; rows[i].Severity == doctor.Unknown && len(of) > 1 {
			rows[i].Check = fmt.Sprintf("%d checks", len(of))
			rows[i].Message += " (" + strings.Join(of, ", ") + ")"
		}
	}
	return rows
}
