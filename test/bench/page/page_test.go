package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

func straight(name string, p50, cpu time.Duration) *results.Target {
	s := []results.Sample{{P50: p50, Webhook: cpu}}
	return &results.Target{Name: name, Title: name, One: s, Many: s, Ready: time.Second}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := &results.Results{
		Straight: []*results.Target{
			straight("job", 100, 0), straight("noop-controllerruntime", 100, 0),
			straight("router-remembered", 120, 400*time.Microsecond), straight("router-new", 131, 0),
		},
		Burst:    []*results.Burst{{Name: "job", Elapsed: []time.Duration{10, 10}}, {Name: "router", Elapsed: []time.Duration{12, 12}}},
		Replicas: []*results.Workload{{Kind: "Job", Pods: 3, Evaluated: 1, Remembered: 2, Counted: true}, {Kind: "Deployment", Pods: 3, Evaluated: 3, Counted: true}},
		Growth:   []*results.Curve{{Name: "nodes", Points: []results.Point{{P50: 10, Reference: 10}, {P50: 12, Reference: 10}}}},
		Large:    &results.Large{Idle: 90e6, Memory: 151e6},
		Profiles: []*results.Profile{
			{Name: "new", Title: "a new decision", Packages: []results.Function{{Name: "policies", Flat: 70}, {Name: "runtime", Flat: 20}}},
			{Name: "remembered", Title: "a copy", Packages: []results.Function{{Name: "encoding/json", Flat: 60}, {Name: "example.com/json/jsontext", Flat: 20}, {Name: "webhook", Flat: 6}, {Name: "sync", Flat: 4}}}},
	}
	got := map[string]string{}
	for _, g := range judge(r) {
		got[g.What] = g.Verdict + " " + g.Why
	}
	want := map[string]string{
		"straight to the webhook, decision remembered: p50": "met ",
		"the same: processor time":                          "met ",
		"straight, every decision new: p50":                 "not met Of the processor time of a new decision, without the connection, packages take themselves: policies 70 %, runtime 20 %; the profile below has the rest.",
		"start: from the process to ready":                  "met ",
		"burst: 0 pods by 32 clients, stored":               "not met ",
		"Job of 3":                                          "met ",
		"Deployment of 3":                                   "not met ",
		"growth: 0 to 0 ":                                   "not met ",
		"memory: 0 nodes, 0 namespaces, 0 classes, 0 pods":  "not met ",
		"start there: from the process to ready":            "reported ",
		"processor time of a copy, by package":              "not met ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEmpty: a page of a run that measured nothing is a page.
func TestEmpty(t *testing.T) {
	t.Parallel()
	page, _, err := Render(&results.Results{}, "performance", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(page); strings.Contains(s, "## Growth") || !strings.Contains(s, "## Gatekeeper and Kyverno") {
		t.Error(s)
	}
}

// TestAllOrNothing: a page that cannot be written leaves the old one and no other file.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := writeAll(map[string][]byte{path: []byte("new"), filepath.Join(dir, "absent", "plot.svg"): nil})
	if err == nil {
		t.Fatal("a file was written into a folder that is not there")
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "old" || len(left) != 1 {
		t.Errorf("%v, %q, %v", left, content, err)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	var got []string
	for _, d := range []time.Duration{0, 1234567, 12345678, 123456789, 1234567890} {
		got = append(got, milliseconds(d))
	}
	for _, n := range []int{0, 999, 1000, 1234567} {
		got = append(got, results.Thousands(n))
	}
	if diff := cmp.Diff([]string{"–", "1.23", "12.3", "123", "1235", "0", "999", "1,000", "1,234,567"}, got); diff != "" {
		t.Error(diff)
	}
}
