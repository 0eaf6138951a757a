package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
)

// TestBenchFormats are golden. The figures are made up.
func TestBenchFormats(t *testing.T) {
	t.Parallel()
	report := &benchmark.Report{
		Namespace: "bench", Image: "busybox:1.37.0", Reference: "crun",
		Measures: []benchmark.Measure{
			{Name: benchmark.CreateToRunning, Classes: []benchmark.Figures{
				{Class: "crun", Count: 20, Of: 20, P50: 1, P90: 1.5, P99: 2, Ratio: 1},
				{Class: "gvisor", Count: 19, Of: 20, P50: 2, P90: 3, P99: 4.004, Ratio: 2.125},
				{Class: "kata-fc", Of: 20},
			}},
			{Name: "mine", Classes: []benchmark.Figures{
				{Class: "crun", Of: 5},
				{Class: "gvisor", Count: 5, Of: 5, P50: 10, P90: 11, P99: 12},
				{Class: "kata-fc", Of: 5},
			}},
		},
		NotMeasured: []benchmark.NotMeasured{{Class: "kata-fc", Reason: "given up"}},
		Pods: []benchmark.Pod{
			{Name: "benchmark-abcde-0", Class: "crun", Workload: benchmark.Start, Node: "node-1", Running: 1, Done: 3, Elapsed: 2},
			{Name: "benchmark-abcde-1", Class: "kata-fc", Workload: benchmark.Start, Warmup: true, Error: "not done in 2m0s"},
		},
	}
	for format, write := range benchWriters {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := write(&out, report); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, "bench."+format+".golden", out.String())
		})
	}
}

// A dry run needs no cluster, and prints what would be created.
func TestBenchDryRun(t *testing.T) {
	t.Parallel()
	out, errOut, err := run(t, "", "bench", "-n", "bench", "--class", "crun,gvisor", "--pods", "3", "--dry-run",
		"--image", "registry.example.com/tools:1", "--image-pull-policy", "Never", "--run-as-user", "0", "--timeout", "90s",
		"--requests", "cpu=50m,memory=32Mi", "--limits", "cpu=2,memory=1Gi", "--workload", "mine=echo $(date) $$ a=b")
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	instance := regexp.MustCompile(`instance: (\w{5})\n`).FindStringSubmatch(out)
	if instance == nil {
		t.Fatalf("no pod has an instance:\n%s", out)
	}
	compareGolden(t, "bench.dry-run.golden", strings.ReplaceAll(out, instance[1], "INSTANCE"))
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got); make golden writes it anew:\n%s", diff)
	}
}

func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]string{
		`required flag(s) "namespace" not set`:     "--class crun",
		"--namespace kube-system: ":                "-n kube-system",
		"--namespace kube-public: ":                "-n kube-public",
		"--namespace runtimeclass-router: ":        "-n runtimeclass-router",
		"--namespace mine: ":                       "-n mine --exempt-namespaces mine",
		`--output "yaml": use table, json or svg`:  "-n bench -o yaml",
		`--workload "x": use NAME=COMMAND`:         "-n bench --class crun --workload x",
		"--limits cpu=much: ":                      "-n bench --class crun --limits cpu=much,memory=1Gi",
		"limits: give memory a positive quantity":  "-n bench --class crun --limits cpu=1",
		"parallel 100: use 1 to 32":                "-n bench --class crun --parallel 100",
		"this takes 1011 pods and max-pods is 500": "-n bench --class crun --pods 1000",
		"find the cluster: ":                       "-n bench --class crun --kubeconfig testdata/none",
	} {
		out, _, err := run(t, "", append([]string{"bench"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: %v\n%s\nwant %s", args, err, out, want)
		}
	}
}

// A class that is replaced ends a benchmark that names it, and is left out of one that
// takes the cluster's.
func TestBenchWithoutAClass(t *testing.T) {
	t.Parallel()
	o := &benchOptions{requests: map[string]string{"cpu": "1", "memory": "1Gi"}, pullPolicy: "Never"}
	o.Namespace, o.Classes, o.Image = "bench", []string{"crun", "gvisor"}, "busybox"
	o.Pods, o.Parallel, o.MaxPods, o.Timeout, o.limits = 2, 1, 4, time.Minute, o.requests
	if err := o.parse(); err != nil {
		t.Fatal(err)
	}
	plan, err := benchmark.NewPlan("run", o.Options)
	if err != nil {
		t.Fatal(err)
	}
	one := map[string]error{"crun": &benchmark.ReplacedError{Asked: "crun", Got: "gvisor"}}
	both := map[string]error{"crun": errors.New("no"), "gvisor": errors.New("nor this")}
	for _, test := range []struct {
		name    string
		refused map[string]error
		named   bool
		classes []string
		err     string
	}{
		{"none, named", nil, true, []string{"crun", "gvisor"}, ""},
		{"one, named", one, true, nil, "runtime class crun: a pod that asks for runtime class crun is admitted with gvisor: measure in a namespace that may run it"},
		{"one of the cluster's", one, false, []string{"gvisor"}, ""},
		{"all of the cluster's", both, false, nil, "runtime class crun: no\nruntime class gvisor: nor this"},
	} {
		left, err := o.without(test.refused, plan, test.named)
		if test.err != "" {
			if left != nil || err == nil || err.Error() != test.err {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.classes, left.Classes); diff != "" || left.Total() != 2*len(test.classes) {
			t.Errorf("%s: %d pods (-want +got)\n%s", test.name, left.Total(), diff)
		}
	}
}
