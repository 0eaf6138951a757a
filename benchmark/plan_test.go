package benchmark

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func valid() Options {
	return Options{
		Namespace: "bench", Classes: []string{"fast", "slow"},
		Pods: 2, Runs: 1, Warmup: 1, Parallel: 2, MaxPods: 100, Timeout: 10 * time.Second,
		Image: "busybox", PullPolicy: corev1.PullNever, RunAsUser: 65534,
		Requests: resources("100m", "64Mi"), Limits: resources("1", "256Mi"),
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func planOf(t *testing.T, o Options) *Plan {
	t.Helper()
	p, err := NewPlan("run", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Classes take turns, and another one begins each round.
func TestPlan(t *testing.T) {
	t.Parallel()
	o := valid()
	o.Runs = 2
	o.Workloads = []Workload{{"mine", "true"}}
	p := planOf(t, o)
	var got [][]string
	for _, phase := range p.Phases {
		var turns []string
		for _, s := range phase.Samples {
			turns = append(turns, s.Class+" "+s.Workload.Name)
		}
		got = append(got, turns)
	}
	want := [][]string{
		{"fast start", "slow start"},
		{"fast start", "slow start", "slow start", "fast start"},
		{
			"fast syscall-heavy", "slow syscall-heavy", "fast compute-heavy", "slow compute-heavy", "fast mine", "slow mine",
			"slow syscall-heavy", "fast syscall-heavy", "slow compute-heavy", "fast compute-heavy", "slow mine", "fast mine",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	names := map[string]bool{}
	for i, phase := range p.Phases {
		if want := []int{2, 2, 1}[i]; phase.Parallel != want {
			t.Errorf("phase %d: %d at once, want %d", i, phase.Parallel, want)
		}
		for _, s := range phase.Samples {
			names[s.Pod] = true
			if s.Warmup != (i == 0) {
				t.Errorf("phase %d: %s: warm-up is %v", i, s.Pod, s.Warmup)
			}
		}
	}
	if len(names) != 18 || p.Total() != 18 {
		t.Errorf("%d names, %d pods, want 18", len(names), p.Total())
	}
	samples, counts := p.Distinct()
	if len(samples) != 8 || counts[samples[0].Pod] != 3 || counts[samples[2].Pod] != 2 {
		t.Errorf("%v %v", samples, counts)
	}
}

func TestPlanIsBounded(t *testing.T) {
	t.Parallel()
	o := valid()
	o.MaxPods = 9
	_, err := NewPlan("run", o)
	if want := "this takes 10 pods and max-pods is 9"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	o.MaxPods = 10
	if _, err := NewPlan("run", o); err != nil {
		t.Error(err)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	o := valid()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Options){
		"namespace: ":                                func(o *Options) { o.Namespace = "" },
		"class: name one":                            func(o *Options) { o.Classes = nil },
		`class "A b": this is not`:                   func(o *Options) { o.Classes = []string{"A b"} },
		`class "a" is named twice`:                   func(o *Options) { o.Classes = []string{"a", "b", "a"} },
		"pods -1: use 0 or more":                     func(o *Options) { o.Pods = -1 },
		"runs -1: use 0 or more":                     func(o *Options) { o.Runs = -1 },
		"warmup -1: use 0":                           func(o *Options) { o.Warmup = -1 },
		"max-pods 0: use 1":                          func(o *Options) { o.MaxPods = 0 },
		"nothing to measure":                         func(o *Options) { o.Pods, o.Runs = 0, 0 },
		"parallel 0: use 1 to 32":                    func(o *Options) { o.Parallel = 0 },
		"parallel 33: use 1 to 32":                   func(o *Options) { o.Parallel = 33 },
		"timeout 0s: use 1s to":                      func(o *Options) { o.Timeout = 0 },
		"timeout 2h0m0s: use 1s":                     func(o *Options) { o.Timeout = 2 * time.Hour },
		"image: name one":                            func(o *Options) { o.Image = "" },
		`image-pull-policy ""`:                       func(o *Options) { o.PullPolicy = "" },
		"run-as-user -1":                             func(o *Options) { o.RunAsUser = -1 },
		"requests: give cpu":                         func(o *Options) { o.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")} },
		"limits: give memory":                        func(o *Options) { o.Limits = resources("1", "0") },
		"requests: memory is above its limit of 1Mi": func(o *Options) { o.Limits = resources("1", "1Mi") },
		`workload "start": there is one`:             func(o *Options) { o.Workloads = []Workload{{"start", "true"}} },
		`workload "compute-heavy": there is one`:     func(o *Options) { o.Workloads = []Workload{{"compute-heavy", "true"}} },
		`workload "A": use lower case`:               func(o *Options) { o.Workloads = []Workload{{"A", "true"}} },
		`workload "a" has no command`:                func(o *Options) { o.Workloads = []Workload{{"a", ""}} },
		"there are workloads to run":                 func(o *Options) { o.Runs, o.Workloads = 0, []Workload{{"a", "true"}} },
	} {
		o := valid()
		spoil(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
