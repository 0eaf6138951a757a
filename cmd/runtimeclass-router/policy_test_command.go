package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

type policyTestOptions struct {
	policyOptions
	match, output   string
	coverage, bench bool
	threshold       float64
}

func newPolicyTestCommand() *cobra.Command {
	o := &policyTestOptions{}
	cmd := &cobra.Command{
		Use:   "test PATH",
		Short: "Run a policy's tests and its fixtures",
		Long: `Run the rules named test_... of the _test.rego files of PATH, together with the shipped
policy, and the fixtures below PATH.

A fixture is a directory with
  pod.yaml        a Pod, or a workload of any kind
  namespace.yaml  its Namespace; without one, a namespace without labels
  cluster.yaml    RuntimeClasses and Nodes; without one, --cluster or the embedded example
  expect.yaml     what must come out, any of: action, trust, runtimeClassName, isolation,
                  and reasons and warnings, of which each must be part of one

Exit status: 0; 1 if a test fails, nothing was run, or coverage is below --threshold.`,
		Example: `  runtimeclass-router policy test policy/
  runtimeclass-router policy test policy/ --coverage --threshold 90 -o junit`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.match, "run", "", "run only tests and fixtures whose name matches this regular expression")
	flags.BoolVar(&o.coverage, "coverage", false, "say how many lines of PATH tests and fixtures evaluate, and which they miss")
	flags.Float64Var(&o.threshold, "threshold", 0, "with --coverage, the percentage of lines that is enough")
	flags.BoolVar(&o.bench, "bench", false, "measure the evaluation for each fixture, for about a second each")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json or junit")
	return cmd
}

// testCase is one rule or fixture that was run.
type testCase struct {
	Kind    string  `json:"kind"` // rego or fixture
	Name    string  `json:"name"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Status  string  `json:"status"`  // pass, fail or skip
	Message string  `json:"message"` // why it failed
	Seconds float64 `json:"seconds"`
}

// testReport is the output of -o json.
type testReport struct {
	Tests      []testCase       `json:"tests"`
	Coverage   *coverageReport  `json:"coverage,omitempty"`
	Benchmarks []benchmarkEntry `json:"benchmarks,omitempty"`
}

type coverageReport struct {
	Percent float64                 `json:"percent"`
	Files   []policies.FileCoverage `json:"files"`
}

type benchmarkEntry struct {
	Fixture     string `json:"fixture"`
	NsPerOp     int64  `json:"nsPerDecision"`
	AllocsPerOp int64  `json:"allocsPerDecision"`
}

func (r *testReport) count(status string) (n int) {
	for i := range r.Tests {
		if r.Tests[i].Status == status {
			n++
		}
	}
	return n
}

func (o *policyTestOptions) run(ctx context.Context, out io.Writer, path string) error {
	write, ok := testWriters[o.output]
	if !ok {
		return fmt.Errorf("--output %q: use table, json or junit", o.output)
	}
	if o.threshold != 0 && !o.coverage {
		return errors.New("--threshold is of use only with --coverage: give both")
	}
	if o.threshold < 0 || o.threshold > 100 {
		return fmt.Errorf("--threshold %v: give a percentage, from 0 to 100", o.threshold)
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	source, err := policies.Read(path)
	if err != nil {
		return writeProblems(out, source.Problems(err))
	}
	modules, err := source.Over(o.mode)
	if err != nil {
		return err
	}
	report := &testReport{Tests: []testCase{}}
	var coverage *policies.Coverage
	if o.coverage {
		coverage = policies.NewCoverage()
	}
	results, err := policies.RunTests(ctx, modules, config, o.match, coverage)
	if err != nil {
		return writeProblems(out, source.Problems(err))
	}
	for _, r := range results {
		report.Tests = append(report.Tests, regoCase(source, r))
	}
	if err := o.fixtures(ctx, path, match, modules, config, coverage, report); err != nil {
		return writeProblems(out, source.Problems(err))
	}
	if len(report.Tests) == 0 {
		return fmt.Errorf("%s: nothing to run: no rule named test_ in a _test.rego file, and no directory with pod.yaml and expect.yaml, matches --run %q", path, o.match)
	}
	if coverage != nil {
		if report.Coverage, err = reportCoverage(coverage, source); err != nil {
			return err
		}
	}
	if err := write(out, report); err != nil {
		return err
	}
	if report.count("fail") > 0 {
		return exitError{code: 1}
	}
	if report.Coverage != nil && report.Coverage.Percent < o.threshold {
		return fmt.Errorf("coverage is %.1f %%, and --threshold asks for %v %%", report.Coverage.Percent, o.threshold)
	}
	return nil
}

func regoCase(source *policies.Source, r policies.TestResult) testCase {
	c := testCase{
		Kind: "rego", Name: r.Name, File: source.File(r.File), Line: r.Line,
		Status: "pass", Message: r.Message, Seconds: r.Duration.Seconds(),
	}
	switch {
	case r.Skipped:
		c.Status = "skip"
	case r.Failed:
		c.Status = "fail"
		if c.Message == "" {
			c.Message = "the rule is false or undefined"
		}
	}
	return c
}

// fixtures runs those below path whose name matches.
func (o *policyTestOptions) fixtures(ctx context.Context, path string, match *regexp.Regexp, modules policies.Modules, config policies.Config, coverage *policies.Coverage, report *testReport) error {
	found, err := findFixtures(path)
	if err != nil || len(found) == 0 {
		return err
	}
	cluster, _, err := o.state(ctx)
	if err != nil {
		return err
	}
	engine, err := o.engine(ctx, withoutTests(modules), config, cluster)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !match.MatchString(f.name) {
			continue
		}
		begin := time.Now()
		if err := f.load(cluster); err != nil {
			report.Tests = append(report.Tests, f.testCase(begin, err))
			continue
		}
		if err := engine.SetCatalog(ctx, f.cluster); err != nil {
			return err
		}
		report.Tests = append(report.Tests, f.testCase(begin, f.run(ctx, &webhook.Router{Engine: engine}, begin)))
		snapshot, err := engine.Snapshot()
		if err != nil {
			return err
		}
		if coverage != nil && f.input != nil {
			// A policy error is the fixture's to report, and has been.
			_ = snapshot.Trace(ctx, *f.input, coverage.Tracer())
		}
		if o.bench && f.input != nil {
			report.Benchmarks = append(report.Benchmarks, measure(ctx, f, snapshot))
		}
	}
	return nil
}

func measure(ctx context.Context, f *fixture, snapshot *policies.Snapshot) benchmarkEntry {
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = snapshot.Evaluate(ctx, *f.input)
		}
	})
	return benchmarkEntry{Fixture: f.name, NsPerOp: result.NsPerOp(), AllocsPerOp: result.AllocsPerOp()}
}

func reportCoverage(coverage *policies.Coverage, source *policies.Source) (*coverageReport, error) {
	files, err := coverage.Report(source.Modules)
	if err != nil {
		return nil, err
	}
	covered, lines := 0, 0
	for i := range files {
		covered, lines = covered+files[i].Covered, lines+files[i].Lines
		files[i].File = source.File(files[i].File)
	}
	report := &coverageReport{Percent: 100, Files: files}
	if lines > 0 {
		report.Percent = 100 * float64(covered) / float64(lines)
	}
	return report, nil
}
