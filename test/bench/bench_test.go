package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/page"
	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// TestQuick measures as little as can be, really: what it checks are answers, counts and
// the page's shape, and no time.
func TestQuick(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "performance.md")
	o, err := parse([]string{"-quick", "-o", out, "-stages", "through,straight,burst,replicas,growth"})
	if err != nil {
		t.Fatal(err)
	}
	o.progress = os.Stderr
	r, err := measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	checkThrough(t, r, o)
	checkStraight(t, r)
	// The controllers' pods differ in names, the injected volume's among them, and no more.
	for _, w := range r.Replicas {
		if w.Routed != o.Replicas || w.Calls != o.Replicas || w.Evaluated != 1 || w.Remembered != o.Replicas-1 {
			t.Errorf("%s of %d: %d routed by %d calls, %d evaluated, %d remembered", w.Kind, o.Replicas, w.Routed, w.Calls, w.Evaluated, w.Remembered)
		}
	}
	if len(r.Replicas) != 3 || len(r.Burst) == 0 {
		t.Errorf("%d workloads, %d bursts", len(r.Replicas), len(r.Burst))
	}
	for _, c := range r.Growth {
		if len(c.Points) != 2 {
			t.Errorf("%s: %d points", c.Title, len(c.Points))
		}
		for _, p := range c.Points {
			if p.Fault != "" {
				t.Errorf("%d %s: %s", p.Size, c.Title, p.Fault)
			}
		}
	}
	if len(r.Growth) != 5 || r.Large == nil || r.Large.Fault != "" || r.Large.MayListPods {
		t.Errorf("%d curves, large cluster %+v", len(r.Growth), r.Large)
	}
	if _, err := page.Write(out, r); err != nil {
		t.Fatal(err)
	}
	checkPage(t, out)
}

// checkThrough: every pod was sent as often as the variant says.
func checkThrough(t *testing.T, r *results.Results, o *options) {
	t.Helper()
	if len(r.Through) != len(variants) {
		t.Fatalf("%d variants, want %d", len(r.Through), len(variants))
	}
	for i, v := range variants {
		want := 0.0
		if v.router || v.baseline != "" {
			want++
		}
		if v.validated {
			want++
		}
		for _, clients := range clientCounts {
			samples := r.Through[i].Samples[clients]
			if len(samples) != o.Rounds {
				t.Fatalf("%s, %d clients: %d samples", v.title, clients, len(samples))
			}
			if samples[0].Calls != want || samples[0].P50 <= 0 {
				t.Errorf("%s, %d clients: %v calls a pod, want %v; p50 %v", v.title, clients, samples[0].Calls, want, samples[0].P50)
			}
		}
	}
}

// checkStraight: what is called new is evaluated each time, and what is called remembered
// once at most.
func checkStraight(t *testing.T, r *results.Results) {
	t.Helper()
	for _, target := range r.Straight {
		if !strings.HasPrefix(target.Name, "router") {
			continue
		}
		evaluated := 1
		if target.Name == "router-new" {
			evaluated = target.Requests
		}
		if !target.Counted || target.Evaluated+target.Remembered != target.Requests || target.Evaluated > evaluated || target.Name == "router-new" && target.Evaluated != evaluated {
			t.Errorf("%s: of %d requests %d evaluated, %d remembered", target.Title, target.Requests, target.Evaluated, target.Remembered)
		}
	}
}

func checkPage(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "## ") {
			headings = append(headings, strings.TrimSpace(line[3:]))
		}
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") < 3 {
			t.Errorf("not a line of a table: %s", line)
		}
	}
	want := []string{
		"What is wanted", "How it is measured", "Through the API server", "Straight to the webhook", "A burst", "Replicas", "Growth", "Gatekeeper and Kyverno",
	}
	if diff := cmp.Diff(want, headings); diff != "" {
		t.Error(diff)
	}
	drawn, err := filepath.Glob(filepath.Join(filepath.Dir(path), "performance", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range drawn {
		drawn[i] = filepath.Base(drawn[i])
	}
	slices.Sort(drawn)
	if diff := cmp.Diff([]string{"classes.svg", "exceptions.svg", "files.svg", "namespaces.svg", "nodes.svg", "variants.svg"}, drawn); diff != "" {
		t.Error(diff)
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 && strings.Contains(string(raw), host) {
		t.Errorf("the page names the host %s", host)
	}
	if strings.Contains(string(raw), os.TempDir()) {
		t.Error("the page names a folder of this machine")
	}
}
