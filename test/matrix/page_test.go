package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func TestReadOutcomes(t *testing.T) {
	t.Parallel()
	got, err := readOutcomes(strings.NewReader(`{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/b"}
{"Action":"output","Test":"TestA/b","Output":"x"}
{"Action":"pass","Test":"TestA/b"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestC"}
{"Action":"skip","Test":"TestC"}
{"Action":"run","Test":"TestKilled"}
{"Action":"fail"}
`))
	want := outcomes{"TestA": "pass", "TestA/b": "pass", "TestC": "skip", "TestKilled": "fail", "": "fail"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if want, got := (count{Passed: 2, Failed: 1, Skipped: 1}), got.count(); want != got {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := readOutcomes(strings.NewReader("FAIL\tbuild")); err == nil {
		t.Error("what is no JSON is read")
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	c := capability{Shown: []string{"guards: TestOn", "chart: TestOn"}, Lacking: []string{"guards: TestOff"}}
	for name, test := range map[string]struct {
		guards, chart outcomes
		want          string
	}{
		"all":          {outcomes{"TestOn": "pass"}, outcomes{"TestOn": "pass"}, holds},
		"one failed":   {outcomes{"TestOn": "pass"}, outcomes{"TestOn": "fail"}, fails},
		"one is gone":  {outcomes{"TestOn": "pass"}, nil, notShown},
		"one skipped":  {outcomes{"TestOn": "pass"}, outcomes{"TestOn": "skip"}, notShown},
		"lacking":      {outcomes{"TestOff": "pass"}, nil, lacks},
		"half lacking": {outcomes{"TestOff": "pass"}, outcomes{"TestOn": "pass"}, notShown},
		"not even so":  {outcomes{"TestOff": "fail"}, nil, fails},
		"nothing ran":  {nil, nil, notShown},
	} {
		on := column{suites: map[string]outcomes{"guards": test.guards, "chart": test.chart}}
		if got := c.verdict(on); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	// Without tests for what is lacking, nothing is.
	if got := (capability{Shown: c.Shown}).verdict(column{}); got != notShown {
		t.Errorf("nothing ran: %s", got)
	}
}

// TestFault: whatever is not as it should be ends the command with an error.
func TestFault(t *testing.T) {
	t.Parallel()
	on := func(outcome, suite string) column {
		c := column{release: controlplane.Newest(), suites: map[string]outcomes{}}
		for _, s := range suites {
			c.suites[s.name] = outcomes{"": suite, "TestOn": outcome}
		}
		return c
	}
	for name, test := range map[string]struct {
		column column
		want   string
	}{
		"good":              {on("pass", "pass"), ""},
		"a test failed":     {on("fail", "fail"), "guards on Kubernetes 1.37: fail"},
		"the suite failed":  {on("pass", "fail"), "guards on Kubernetes 1.37: fail"},
		"a test is skipped": {on("skip", "pass"), `"a": NOT SHOWN`},
	} {
		err := page{Columns: []column{test.column}, Capabilities: []capability{{Name: "a", Shown: []string{"guards: TestOn"}}}}.fault()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestFaultOfAVersionThatWasNotRun(t *testing.T) {
	t.Parallel()
	if err := (page{NotRun: []string{"1.34.4"}}).fault(); err == nil || !strings.Contains(err.Error(), "1.34.4 was not run") {
		t.Errorf("%v", err)
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	same := column{suites: map[string]outcomes{"guards": {"": "pass", "TestA": "pass", "TestB": "pass", "TestB/c": "pass"}}}
	other := column{suites: map[string]outcomes{"guards": {"": "fail", "TestA": "pass", "TestD": "fail", "TestD/e": "fail"}}}
	want := []difference{
		{Test: "guards: TestB", Outcomes: []string{"pass", ""}},
		{Test: "guards: TestD", Outcomes: []string{"", "fail"}},
	}
	if diff := cmp.Diff(want, page{Columns: []column{same, other}}.Differences()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCapabilitiesNameTests, which somebody may rename.
func TestCapabilitiesNameTests(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for _, s := range suites {
		files, err := filepath.Glob(filepath.Join("..", s.name, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[s.name] += string(text)
		}
	}
	for _, c := range capabilities {
		for _, test := range slices.Concat(c.Shown, c.Lacking) {
			suite, name, _ := strings.Cut(test, ": ")
			name, _, _ = strings.Cut(name, "/")
			if !strings.Contains(sources[suite], "func "+name+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", c.Name, test)
			}
		}
	}
}

// TestPageIsOfTheseVersions: a version that is raised, and a capability that is added, are run
// before they are claimed, or the page says that they were not.
func TestPageIsOfTheseVersions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range controlplane.Releases() {
		version := strings.TrimPrefix(release.Version, "v")
		if !strings.Contains(string(text), "| "+version+" |") && !strings.Contains(string(text), "**Not run on "+version+"**") {
			t.Errorf("the page lacks %s: make test-matrix", version)
		}
	}
	for _, c := range capabilities {
		if !strings.Contains(string(text), "\n| "+c.Name+" |") || !strings.Contains(string(text), c.Tests()) {
			t.Errorf("the page lacks %q: make test-matrix", c.Name)
		}
	}
}
