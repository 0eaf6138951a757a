package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// options are what the flags say.
type options struct {
	results.Settings

	out    string // the page
	keep   string // a file for the results
	render string // a file with results to make the page of
	stages map[string]bool
	pods   int // in the large cluster
	// largest is where curves end, if they are not shorter.
	largest int

	progress io.Writer
	baseline string // the file of that command
}

// stages in the order in which they run.
var stages = []string{"through", "straight", "burst", "replicas", "growth", "profile"}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.out, "o", "docs/performance.md", "the page to write; its plots go to the folder of that name")
	f.StringVar(&o.keep, "keep", "", "write the results to this file, too")
	f.StringVar(&o.render, "render", "", "measure nothing: make the page of the results in this file")
	f.IntVar(&o.Rounds, "rounds", 7, "rounds, in each of which all variants have a turn")
	f.IntVar(&o.Pods, "pods", 250, "pods a round and variant with one client; twice as many with more clients")
	f.IntVar(&o.Requests, "requests", 500, "requests a round and webhook over one connection; four times as many over sixteen")
	f.IntVar(&o.Burst, "burst", 500, "pods of a burst")
	f.IntVar(&o.Replicas, "replicas", 500, "replicas of a Deployment, a StatefulSet and an indexed Job")
	f.IntVar(&o.pods, "large-pods", 0, "pods that the large cluster holds while memory is read; 50000 take about ten minutes more")
	f.IntVar(&o.largest, "largest", 10000, "no curve of growth goes beyond this many nodes, namespaces, ...; 1000 save about five minutes")
	f.BoolVar(&o.Quick, "quick", false, "as little as shows that it works; the figures say nothing")
	only := f.String("stages", strings.Join(stages, ","), "what to measure")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.Quick {
		o.quicken(f)
	}
	o.stages = map[string]bool{}
	for stage := range strings.SplitSeq(*only, ",") {
		if !slices.Contains(stages, stage) {
			return nil, fmt.Errorf("-stages: there is no %q: use %s", stage, strings.Join(stages, ", "))
		}
		o.stages[stage] = true
	}
	for name, n := range map[string]int{"rounds": o.Rounds, "pods": o.Pods, "requests": o.Requests, "burst": o.Burst, "replicas": o.Replicas} {
		if n < 1 {
			return nil, fmt.Errorf("-%s: %d: want 1 or more", name, n)
		}
	}
	return o, nil
}

// quicken lowers what was not given.
func (o *options) quicken(f *flag.FlagSet) {
	few := map[string]int{"rounds": 1, "pods": 10, "requests": 20, "burst": 20, "replicas": 20}
	f.Visit(func(given *flag.Flag) { delete(few, given.Name) })
	for _, name := range slices.Sorted(maps.Keys(few)) {
		_ = f.Set(name, fmt.Sprint(few[name])) // a number is one
	}
}
