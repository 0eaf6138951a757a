package policies

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

// parsedShipped are the shipped modules, tests included.
func parsedShipped(t *testing.T) map[string]*ast.Module {
	t.Helper()
	modules, err := readModules(shipped)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(modules)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// unhurried gives a rule more than OPA's five seconds: the race detector and a busy machine
// take their share.
func unhurried(r *tester.Runner) *tester.Runner { return r.SetTimeout(time.Minute) }

// TestRego runs the tests that lie beside the shipped rules, each as a subtest.
func TestRego(t *testing.T) {
	t.Parallel()
	parsed := parsedShipped(t)
	results, err := testResults(t.Context(), parsed, DefaultConfig(), unhurried)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 40 {
		t.Errorf("%d Rego tests ran: some file is not read", len(results))
	}
	for _, result := range results {
		t.Run(result.Package+"/"+result.Name, func(t *testing.T) {
			if !result.Pass() || result.Skip {
				t.Errorf("%s: failed (skipped: %t, error: %v)", result.Location, result.Skip, result.Error)
			}
		})
	}
}

// TestRegoCoverage keeps every line of the shipped rules under test.
func TestRegoCoverage(t *testing.T) {
	t.Parallel()
	parsed := parsedShipped(t)
	coverage := cover.New()
	if _, err := testResults(t.Context(), parsed, DefaultConfig(), func(r *tester.Runner) *tester.Runner {
		return r.SetCoverageQueryTracer(coverage)
	}, unhurried); err != nil {
		t.Fatal(err)
	}
	for name, file := range coverage.Report(parsed).Files {
		if isTest(name) {
			continue
		}
		for _, r := range file.NotCovered {
			// As shipped the hooks are empty.
			if name != "rego/custom.rego" {
				t.Errorf("%s:%d-%d is not covered by a test", name, r.Start.Row, r.End.Row)
			}
		}
	}
}

func TestRegoIsFormatted(t *testing.T) {
	t.Parallel()
	modules, err := readModules(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range modules {
		formatted, err := format.Source(name, []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(formatted, []byte(source)) {
			continue
		}
		if *update {
			err = os.WriteFile(name, formatted, 0o644)
		} else {
			err = errors.New("not formatted: run make generate")
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
