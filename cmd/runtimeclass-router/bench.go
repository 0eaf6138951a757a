package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
)

type benchOptions struct {
	benchmark.Options
	workloads        []string
	requests, limits map[string]string
	pullPolicy       string

	kubeconfig, context string
	exempt              []string
	output, svg         string
	dryRun              bool
}

func newBenchCommand() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench -n NAMESPACE",
		Short: "Measure pods under several runtime classes, on a live cluster",
		Long: `Start pods under several RuntimeClasses in a namespace of a live cluster, and compare: how
long from the creation until the container is seen running and until it is seen to have
ended, and how long two workloads take, one heavy in system calls and one in
computation, beside those of --workload. The first class is what the others are compared
with. Classes take turns.

The pods name their class themselves. One that is admitted with another, since the
namespace may not run it, is not measured: that is an error for a class of --class, and
a note where the classes are the cluster's.

Everything that is created is a pod with the labels
app.kubernetes.io/managed-by=runtimeclass-router-bench and app.kubernetes.io/instance, and is
deleted in the end: also on an error, and when you interrupt it. What could not be
deleted is named.

It takes the rights to create, delete, list and watch pods in the namespace; without
--class also to list nodes, namespaces and runtimeclasses.node.k8s.io in the cluster.

Exit status: 0; 1 if a class could not be measured to its end, or a pod not be deleted.`,
		Example: `  runtimeclass-router bench -n bench --context prod
  runtimeclass-router bench -n bench --class crun,gvisor --workload install='pip install -q flask' --image python:3.14-slim --run-as-user 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "the namespace to run in, which exists")
	flags.StringSliceVar(&o.Classes, "class", nil, "runtime classes to compare, the first with the others (default all whose pool has a ready node or is autoscaled, those that isolate least first)")
	flags.IntVar(&o.Pods, "pods", 20, "how many short pods of each class are started")
	flags.IntVar(&o.Runs, "runs", 5, "how often each class runs each workload, one after the other")
	flags.IntVar(&o.Warmup, "warmup", 1, "how many pods of each class come first and do not count: a node's first may pull the image")
	flags.StringArrayVar(&o.workloads, "workload", nil, "a workload of yours, as NAME=COMMAND, for /bin/sh -c; may be repeated")
	flags.IntVar(&o.Parallel, "parallel", 4, fmt.Sprintf("how many short pods there are at once, at most %d", benchmark.MostParallel))
	flags.IntVar(&o.MaxPods, "max-pods", 500, "how many pods there may be in all")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long one pod may take")
	flags.StringVar(&o.Image, "image", "busybox:1.37.0", "the image of the pods, with /bin/sh and /bin/true")
	flags.StringVar(&o.pullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "Always, IfNotPresent or Never")
	flags.Int64Var(&o.RunAsUser, "run-as-user", 65534, "the numeric user of the pods; 0 is root")
	flags.StringToStringVar(&o.requests, "requests", map[string]string{"cpu": "100m", "memory": "64Mi"}, "what each pod requests")
	flags.StringToStringVar(&o.limits, "limits", map[string]string{"cpu": "1", "memory": "256Mi"}, "what each pod is limited to")
	flags.StringVar(&o.context, "context", "", "the kubeconfig context of the cluster (default the current one)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig file (default as for kubectl)")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", exemptNamespaces(), exemptNamespacesUsage+"; no pods are started in them")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json or svg")
	flags.StringVar(&o.svg, "svg", "", "write a chart to this file too")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the pods and create none; with --class no cluster is asked")
	if err := cmd.MarkFlagRequired("namespace"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (o *benchOptions) run(ctx context.Context, out, errOut io.Writer) error {
	write, ok := benchWriters[o.output]
	if !ok {
		return fmt.Errorf("--output %q: use table, json or svg", o.output)
	}
	if err := o.parse(); err != nil {
		return err
	}
	named := len(o.Classes) > 0
	if !named {
		if err := o.findClasses(ctx, errOut); err != nil {
			return err
		}
	}
	plan, err := benchmark.NewPlan(rand.String(5), o.Options)
	if err != nil {
		return err
	}
	if o.dryRun {
		return writePods(out, plan)
	}
	kube, err := kubeConfig(o.kubeconfig, o.context)
	if err != nil {
		return err
	}
	kube.QPS, kube.Burst = 50, 100 // a client that waits for itself measures itself
	kube.WarningHandler = rest.NewWarningWriter(errOut, rest.WarningWriterOptions{Deduplicate: true})
	clients, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	report, err := o.measure(ctx, &benchmark.Runner{Client: clients}, plan, named, errOut)
	if report == nil {
		return err
	}
	return errors.Join(err, write(out, report), o.writeSVG(report))
}

// parse reads what flags spell in their own way, and refuses namespaces that are none of
// a benchmark's business.
func (o *benchOptions) parse() error {
	if strings.HasPrefix(o.Namespace, "kube-") || slices.Contains(o.exempt, o.Namespace) {
		return fmt.Errorf("--namespace %s: the webhook does not route its pods, and the cluster depends on it: use one of its own", o.Namespace)
	}
	var errs []error
	quantities := func(flag string, values map[string]string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			quantity, err := resource.ParseQuantity(values[name])
			if err != nil {
				errs = append(errs, fmt.Errorf("--%s %s=%s: %w", flag, name, values[name], err))
			}
			list[corev1.ResourceName(name)] = quantity
		}
		return list
	}
	o.Requests, o.Limits = quantities("requests", o.requests), quantities("limits", o.limits)
	o.PullPolicy = corev1.PullPolicy(o.pullPolicy)
	for _, workload := range o.workloads {
		name, command, ok := strings.Cut(workload, "=")
		if !ok {
			errs = append(errs, fmt.Errorf("--workload %q: use NAME=COMMAND", workload))
		}
		o.Workloads = append(o.Workloads, benchmark.Workload{Name: name, Command: command})
	}
	return errors.Join(errs...)
}

// measure carries the plan out. What went wrong stands beside the report of the rest; there
// is none where nothing was measured.
func (o *benchOptions) measure(ctx context.Context, runner *benchmark.Runner, plan *benchmark.Plan, named bool, errOut io.Writer) (*benchmark.Report, error) {
	others, err := runner.Others(ctx, plan)
	if err != nil {
		return nil, err
	}
	if others > 0 {
		fmt.Fprintf(errOut, "note: %d pods of another benchmark are in namespace %s; if none runs: kubectl delete pods --namespace %[2]s --selector %s=%s\n",
			others, o.Namespace, benchmark.ManagedByLabel, benchmark.ManagedBy)
	}
	refused := runner.Check(ctx, plan)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if plan, err = o.without(refused, plan, named); err != nil {
		return nil, err
	}
	for _, class := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(errOut, "note: runtime class %s is not measured: %v\n", class, refused[class])
	}
	fmt.Fprintf(errOut, "%d pods in namespace %s, at most %d at once\n", plan.Total(), plan.Namespace, plan.Parallel)
	bar := newProgress(errOut)
	bar.Size(int64(plan.Total()))
	bar.At(0)
	runner.Progress = func(done int) { bar.At(int64(done)) }
	heard := context.AfterFunc(ctx, func() { fmt.Fprintln(errOut, "\ninterrupted: deleting the pods") })
	results, err := runner.Run(ctx, plan)
	heard()
	bar.done()
	if results == nil {
		return nil, err
	}
	report := benchmark.NewReport(plan, results, refused)
	for _, note := range report.Notes() {
		fmt.Fprintf(errOut, "note: %s\n", note)
	}
	errs := []error{err}
	for _, class := range slices.Sorted(maps.Keys(results.GivenUp)) {
		errs = append(errs, fmt.Errorf("runtime class %s: %w", class, results.GivenUp[class]))
	}
	return report, errors.Join(errs...)
}

func (o *benchOptions) writeSVG(report *benchmark.Report) error {
	if o.svg == "" {
		return nil
	}
	file, err := os.Create(o.svg)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return errors.Join(report.WriteSVG(file), file.Close())
}
