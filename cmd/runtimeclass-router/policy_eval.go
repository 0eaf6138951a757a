package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/profiler"
	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

type policyEvalOptions struct {
	policyOptions
	file, policy     string
	explain, profile bool
}

func newPolicyEvalCommand() *cobra.Command {
	o := &policyEvalOptions{}
	cmd := &cobra.Command{
		Use:   "eval -f FILE",
		Short: "Print a policy's decision on one pod, why, or what it cost",
		Long: `Print what a policy answers for the pod or workload of a manifest, as JSON. The file may
hold its Namespace too; one that is not there counts as without labels.

--explain prints in place of the JSON how the shipped rules came to the answer: trust,
profile, each candidate with what rules it out, and the choice. --profile prints the ten
expressions that took most time.

Exit status: 0, also for a denial; 1 if the answer is a policy error.`,
		Example: `  runtimeclass-router policy eval -f pod.yaml --explain
  runtimeclass-router policy eval -f pod.yaml --policy policy/ --profile`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "a manifest with one pod or workload, or - for standard input")
	flags.StringVar(&o.policy, "policy", "", "the author's policy, as for policy check; without it the shipped one")
	flags.BoolVar(&o.explain, "explain", false, "say how the answer came about")
	flags.BoolVar(&o.profile, "profile", false, "say what took the time")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.MarkFlagsMutuallyExclusive("explain", "profile")
	return cmd
}

// question is one pod, and what it is asked over.
type question struct {
	source   *policies.Source
	input    policies.Input
	router   *webhook.Router
	snapshot *policies.Snapshot
}

func (o *policyEvalOptions) run(ctx context.Context, in io.Reader, out io.Writer) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	source, modules, err := readPolicy(o.policy, o.mode)
	if err != nil {
		return writeProblems(out, source.Problems(err))
	}
	cluster, namespaces, err := o.state(ctx)
	if err != nil {
		return err
	}
	manifests, err := catalog.ReadManifests([]string{o.file}, in)
	if err != nil {
		return err
	}
	maps.Copy(namespaces, manifests.Namespaces())
	input, err := onlyPod(manifests, namespaces, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	engine, err := o.engine(ctx, modules, config, cluster)
	if err != nil {
		return writeProblems(out, source.Problems(err))
	}
	snapshot, err := engine.Snapshot()
	if err != nil {
		return err
	}
	q := &question{source: source, input: *input, router: &webhook.Router{Engine: engine}, snapshot: snapshot}
	switch {
	case o.explain:
		return q.explain(ctx, out)
	case o.profile:
		return q.profile(ctx, out)
	}
	return q.decision(ctx, out)
}

// readPolicy reads an author's policy; "" and "shipped" are the shipped one.
func readPolicy(path, mode string) (*policies.Source, policies.Modules, error) {
	if path == "" || path == "shipped" {
		return &policies.Source{}, policies.Shipped(), nil
	}
	source, err := policies.Read(path)
	if err != nil {
		return source, nil, err
	}
	modules, err := source.Over(mode)
	return source, modules, err
}

// onlyPod is the one pod or workload of the manifests.
func onlyPod(manifests *catalog.Manifests, namespaces map[string]*catalog.Namespace, now time.Time) (*policies.Input, error) {
	var found []*policies.Input
	for i := range manifests.Documents {
		input, _, err := survey.Read(&manifests.Documents[i], namespaces, now)
		if err != nil {
			return nil, err
		}
		if input != nil {
			found = append(found, input)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d pods and workloads: give a file with one, or use route for many", len(found))
	}
	return found[0], nil
}

// decision prints the answer, and reports one that Go refuses.
func (q *question) decision(ctx context.Context, out io.Writer) error {
	decision, err := q.snapshot.Decide(ctx, q.input)
	if err != nil {
		return q.located(blame(ctx, q.snapshot, q.source, q.input, err))
	}
	if err := encodeJSON(out, filledDecision(decision)); err != nil {
		return err
	}
	if _, err := q.router.Route(ctx, q.input); err != nil {
		return q.located(blame(ctx, q.snapshot, q.source, q.input, err))
	}
	return nil
}

// located is an error with the place of the rule, as policy check says it.
func (q *question) located(err error) error {
	var errs []error
	for _, p := range q.source.Problems(err) {
		errs = append(errs, errors.New(p.String()))
	}
	return errors.Join(errs...)
}

// filledDecision has empty lists and maps where there is nothing.
func filledDecision(d policies.Decision) policies.Decision {
	r := result{}
	r.NodeSelector, r.Tolerations, r.Reasons, r.Warnings = d.NodeSelector, d.Tolerations, d.Reasons, d.Warnings
	r = r.filled()
	d.NodeSelector, d.Tolerations, d.Reasons, d.Warnings = r.NodeSelector, r.Tolerations, r.Reasons, r.Warnings
	return d
}

// profileRounds are enough that one pause of the process does not decide the order.
const profileRounds = 100

// profile prints the expressions that took most time, per decision.
func (q *question) profile(ctx context.Context, out io.Writer) error {
	if _, err := q.snapshot.Decide(ctx, q.input); err != nil {
		return q.located(err)
	}
	p := profiler.New()
	for range profileRounds {
		if err := q.snapshot.Trace(ctx, q.input, p); err != nil {
			return q.located(err)
		}
	}
	fmt.Fprintf(out, "%10s  %8s  %s\n", "µs", "evals", "expression")
	for _, stats := range p.ReportTopNResults(10, []string{"total_time_ns"}) {
		place := "(query)"
		if stats.Location.HasFile() {
			place = fmt.Sprintf("%s:%d", q.source.File(stats.Location.File), stats.Location.Row)
		}
		text := firstLine(string(stats.Location.Text))
		fmt.Fprintf(out, "%10.1f  %8.1f  %s  %s\n",
			float64(stats.ExprTimeNs)/1000/profileRounds, float64(stats.NumEval)/profileRounds, place, text)
	}
	return nil
}

func firstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}
