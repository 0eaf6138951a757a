package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

const module = "github.com/runtimeclass-router/runtimeclass-router"

// profiles takes the Go benchmark of a whole review, of a decision that is remembered
// and of one that is new, and says where the time goes.
func profiles(ctx context.Context, o *options, r *results.Results) (err error) {
	dir, err := os.MkdirTemp("", "bench-profile-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "webhook.test")
	fmt.Fprintln(o.progress, "profiling the webhook's benchmark")
	if _, err := goCommand(ctx, "test", "-c", "-o", binary, module+"/webhook"); err != nil {
		return err
	}
	source, err := goCommand(ctx, "list", "-f", "{{.Dir}}", module+"/webhook")
	if err != nil {
		return err
	}
	for _, p := range []*results.Profile{
		{Name: "remembered", Title: "a decision that is remembered"},
		{Name: "new", Title: "a new decision"},
	} {
		file := filepath.Join(dir, p.Name+".pprof")
		// Where `go test` would run it: its fixtures are found from there.
		out, err := commandIn(ctx, strings.TrimSpace(source), binary, "-test.run", "^$", "-test.bench", "^BenchmarkMutatePod$/^untrusted$/^"+p.Name+"$",
			"-test.benchmem", "-test.benchtime", "5s", "-test.cpuprofile", file)
		if err != nil {
			return err
		}
		if p.Benchmark = benchmarkLine(out); p.Benchmark == "" {
			return fmt.Errorf("profile %s: there is no benchmark BenchmarkMutatePod/untrusted/%s", p.Title, p.Name)
		}
		top, err := goCommand(ctx, "tool", "pprof", "-top", "-cum", "-nodefraction", "0", "-nodecount", "10000",
			"-ignore", betweenRounds, "-relative_percentages", binary, file)
		if err != nil {
			return err
		}
		functions, err := parseTop(top)
		if err != nil {
			return err
		}
		p.Packages = byPackage(functions)
		p.Functions = slices.DeleteFunc(functions, func(f results.Function) bool { return f.Cumulative < 1 || scaffolding.MatchString(f.Name) })
		r.Profiles = append(r.Profiles, p)
	}
	return nil
}

func benchmarkLine(out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "BenchmarkMutatePod") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return ""
}

// topLine is one of `go tool pprof -top`: flat, flat%, sum%, cum, cum%, name.
var topLine = regexp.MustCompile(`^\s*\S+\s+([0-9.]+)%\s+[0-9.]+%\s+\S+\s+([0-9.]+)%\s+(.+)$`)

// betweenRounds is what the benchmark does while its timer stands still: it makes bodies
// and loads the policy anew.
const betweenRounds = `webhook\.largeReview|policies\.\(\*Engine\)\.(Load|newPolicy|try)|webhook\.newHandler`

// scaffolding is what runs a benchmark, and not what it measures.
var scaffolding = regexp.MustCompile(`^(testing\.|runtime\.(goexit|main|mcall|park_m|schedule|findRunnable|mstart|mstart0|mstart1|systemstack)$|main\.main|.*BenchmarkMutatePod)`)

// shape is what the compiler adds to the name of a generic function, and inlined what
// pprof adds to one that was inlined.
var shape, inlined = regexp.MustCompile(`\[.*\]`), regexp.MustCompile(` \((partial-)?inline\)$`)

// parseTop returns the functions in the order of their share with what they call.
func parseTop(top string) ([]results.Function, error) {
	var found []results.Function
	for line := range strings.Lines(top) {
		m := topLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		flat, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		cumulative, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		name := shape.ReplaceAllString(inlined.ReplaceAllString(m[3], ""), "[...]")
		found = append(found, results.Function{Name: strings.TrimPrefix(name, module+"/"), Flat: flat, Cumulative: cumulative})
	}
	return found, nil
}

// byPackage sums what the functions of each package take themselves, largest first.
func byPackage(functions []results.Function) []results.Function {
	flat := map[string]float64{}
	for _, f := range functions {
		flat[packageOf(f.Name)] += f.Flat
	}
	var found []results.Function
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		if flat[name] >= 1 {
			found = append(found, results.Function{Name: name, Flat: flat[name]})
		}
	}
	slices.SortStableFunc(found, func(a, b results.Function) int { return cmp.Compare(b.Flat, a.Flat) })
	return found
}

// packageOf is the import path of a function's package; assembly of the runtime has none.
func packageOf(function string) string {
	path, name := "", function
	if i := strings.LastIndex(function, "/"); i >= 0 {
		path, name = function[:i+1], function[i+1:]
	}
	before, _, ok := strings.Cut(name, ".")
	if !ok {
		return "runtime"
	}
	return path + before
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	return commandIn(ctx, "", "go", args...)
}

// commandIn runs a command, and ends all that it has started when ctx ends.
func commandIn(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &stdout, &stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
