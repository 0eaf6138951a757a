package policies

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// TestResult is how one rule named test_... ended.
type TestResult struct {
	Name     string // with its package, as data.custom_test.test_it
	File     string
	Line     int
	Failed   bool
	Skipped  bool
	Message  string // why it failed, on one line; empty for a plain false
	Duration time.Duration
}

// RunTests runs the rules named test_... whose name matches the regular expression,
// over an empty catalog, sorted by place. coverage may be nil.
func RunTests(ctx context.Context, modules Modules, config Config, match string, coverage *Coverage) ([]TestResult, error) {
	parsed, err := parse(modules)
	if err != nil {
		return nil, err
	}
	results, err := testResults(ctx, parsed, config, func(r *tester.Runner) *tester.Runner {
		if coverage != nil {
			r = r.SetCoverageQueryTracer(coverage.cover)
		}
		return r.Filter(match)
	})
	if err != nil {
		return nil, err
	}
	found := make([]TestResult, 0, len(results))
	for _, r := range results {
		one := TestResult{Name: r.Package + "." + r.Name, Failed: !r.Pass() && !r.Skip, Skipped: r.Skip, Duration: r.Duration}
		if r.Location != nil {
			one.File, one.Line = r.Location.File, r.Location.Row
		}
		if r.Error != nil {
			one.Message = fold(r.Error.Error())
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b TestResult) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// Coverage collects which lines of a policy are evaluated.
type Coverage struct{ cover *cover.Cover }

// NewCoverage returns an empty collection.
func NewCoverage() *Coverage { return &Coverage{cover: cover.New()} }

// Tracer is for [Snapshot.Trace].
func (c *Coverage) Tracer() topdown.QueryTracer { return c.cover }

// FileCoverage is what was evaluated of one file.
type FileCoverage struct {
	File string `json:"file"`
	// Covered and Lines count lines that hold something to evaluate.
	Covered int `json:"covered"`
	Lines   int `json:"lines"`
	// Missed are the lines that were not, as "4" or "7-9".
	Missed []string `json:"missed"`
}

// Report counts over some modules, without tests, sorted by file.
func (c *Coverage) Report(modules Modules) ([]FileCoverage, error) {
	parsed, err := parse(modules)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(parsed, func(name string, _ *ast.Module) bool { return isTest(name) })
	report := c.cover.Report(parsed)
	files := []FileCoverage{}
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		file := report.Files[name]
		missed := []string{}
		for _, r := range file.NotCovered {
			if line := fmt.Sprintf("%d-%d", r.Start.Row, r.End.Row); r.Start.Row != r.End.Row {
				missed = append(missed, line)
			} else if line, _, _ = strings.Cut(line, "-"); !slices.Contains(missed, line) {
				missed = append(missed, line)
			}
		}
		files = append(files, FileCoverage{
			File: name, Covered: file.CoveredLines, Lines: file.CoveredLines + file.NotCoveredLines, Missed: missed,
		})
	}
	return files, nil
}
