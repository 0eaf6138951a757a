package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// testWriters are the formats of policy test --output.
var testWriters = map[string]func(io.Writer, *testReport) error{
	"table": writeTests,
	"json":  func(out io.Writer, report *testReport) error { return encodeJSON(out, report) },
	"junit": writeJUnit,
}

// writeTests prints a line for each test, failures with their place.
func writeTests(out io.Writer, report *testReport) error {
	var s strings.Builder
	for i := range report.Tests {
		c := &report.Tests[i]
		fmt.Fprintf(&s, "%s  %s\n", strings.ToUpper(c.Status), c.Name)
		if c.Status == "fail" {
			fmt.Fprintf(&s, "      %s: %s\n", c.place(), c.Message)
		}
	}
	fmt.Fprintf(&s, "%d passed, %d failed", report.count("pass"), report.count("fail"))
	if skipped := report.count("skip"); skipped > 0 {
		fmt.Fprintf(&s, ", %d skipped", skipped)
	}
	s.WriteString("\n")
	if report.Coverage != nil {
		for _, f := range report.Coverage.Files {
			fmt.Fprintf(&s, "%s: %d of %d lines covered", f.File, f.Covered, f.Lines)
			if len(f.Missed) > 0 {
				fmt.Fprintf(&s, "; not %s", strings.Join(f.Missed, ", "))
			}
			s.WriteString("\n")
		}
		fmt.Fprintf(&s, "coverage: %.1f %%\n", report.Coverage.Percent)
	}
	for _, b := range report.Benchmarks {
		fmt.Fprintf(&s, "%s: %d ns and %d allocations per decision\n", b.Fixture, b.NsPerOp, b.AllocsPerOp)
	}
	_, err := io.WriteString(out, s.String())
	return err
}

func (c *testCase) place() string {
	if c.Line > 0 {
		return fmt.Sprintf("%s:%d", c.File, c.Line)
	}
	return c.File
}

// junitSuite is what pipelines read as JUnit's format.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	ClassName string        `xml:"classname,attr"`
	File      string        `xml:"file,attr"`
	Line      int           `xml:"line,attr,omitempty"`
	Time      string        `xml:"time,attr"`
	Failure   *junitFailure `xml:"failure"`
	Skipped   *struct{}     `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(out io.Writer, report *testReport) error {
	suite := junitSuite{Name: "policy", Tests: len(report.Tests), Failures: report.count("fail"), Skipped: report.count("skip")}
	for i := range report.Tests {
		c := &report.Tests[i]
		one := junitCase{Name: c.Name, ClassName: c.Kind, File: c.File, Line: c.Line, Time: fmt.Sprintf("%.6f", c.Seconds)}
		switch c.Status {
		case "fail":
			one.Failure = &junitFailure{Message: c.Message, Text: c.place() + ": " + c.Message}
		case "skip":
			one.Skipped = &struct{}{}
		}
		suite.Cases = append(suite.Cases, one)
	}
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	if err := encoder.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
