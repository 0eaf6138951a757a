package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// outcomes of tests, by name; a suite's own has the empty name. They are the words of go test:
// pass, fail and skip.
type outcomes map[string]string

// readOutcomes reads what `go test -json` printed.
func readOutcomes(r io.Reader) (outcomes, error) {
	found := outcomes{}
	for decoder := json.NewDecoder(r); ; {
		var event struct{ Action, Test string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		switch event.Action {
		case "pass", "fail", "skip":
			found[event.Test] = event.Action
		case "run":
			found[event.Test] = "fail" // unless it ends
		}
	}
}

// count is how many tests, each subtest being one, ended how.
type count struct{ Passed, Failed, Skipped int }

func (o outcomes) count() count {
	var c count
	for test, outcome := range o {
		switch {
		case test == "":
		case outcome == "pass":
			c.Passed++
		case outcome == "fail":
			c.Failed++
		case outcome == "skip":
			c.Skipped++
		}
	}
	return c
}

func (c count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
}

// column is what came out on one version: outcomes by suite.
type column struct {
	release controlplane.Release
	suites  map[string]outcomes
}

func readColumn(release controlplane.Release, logs string) (column, error) {
	c := column{release: release, suites: map[string]outcomes{}}
	for _, s := range suites {
		file, err := os.Open(logPath(logs, release, s))
		if err != nil {
			return c, fmt.Errorf("%s on Kubernetes %s was not run: %w", s.name, release.Minor(), err)
		}
		c.suites[s.name], err = readOutcomes(file)
		_ = file.Close() // it was only read
		if err != nil {
			return c, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		if c.suites[s.name][""] == "" {
			return c, fmt.Errorf("%s on Kubernetes %s did not end", s.name, release.Minor())
		}
	}
	return c, nil
}

// Version is the version's number.
func (c column) Version() string { return strings.TrimPrefix(c.release.Version, "v") }

// Counts are by suite, in their order.
func (c column) Counts() []count {
	var counts []count
	for _, s := range suites {
		counts = append(counts, c.suites[s.name].count())
	}
	return counts
}

// Total is of all suites.
func (c column) Total() count {
	var total count
	for _, suite := range c.Counts() {
		total.Passed += suite.Passed
		total.Failed += suite.Failed
		total.Skipped += suite.Skipped
	}
	return total
}

// outcome is of a test by "suite: name", empty if it did not run.
func (c column) outcome(test string) string {
	suite, name, _ := strings.Cut(test, ": ")
	return c.suites[suite][name]
}
