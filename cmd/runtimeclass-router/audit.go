package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// exitFound is the status where --fail-on is met.
const exitFound = 2

type auditOptions struct {
	policyDiffOptions // the policy is its "after"; there is no "before"
	failOn            string
	enforced          bool
}

func newAuditCommand() *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit (-f FILE... | --context NAME | --kubeconfig FILE)",
		Short: "Say which running pods are not as today's policy would have them",
		Long: `Hold running pods against the policy and the labels of today, and print those that are
not as they should be, by owner. A pod has the first of these findings that is true:

  below-floor      high    its class isolates less than the floor of its trust, by the
                           class's handler today, and no exception covers it
  would-be-denied  medium  the pod that its owner makes next would be refused
  policy-error     medium  the policy fails on it
  drifted          low     the next one would get another class, or the class selects
                           other nodes than it did

A class that is gone, and the node's default, count as no isolation. Trust is what the
labels allow now: a label that was changed after the pod was created counts as it is now.
In a namespace in mode warn or audit nothing is enforced: the table names the mode beside
the finding, and --enforced leaves such findings out. Pods of exempt namespaces, static
pods, and pods that have ended or are being deleted are counted and not looked at.

The policy is that of --policy, over the configuration of --config: neither is read from
the cluster. Without -f the pods of the live cluster are read by the page. It takes the right to list
pods, namespaces, nodes and runtimeclasses.node.k8s.io, across namespaces; with -n pods
in that one are enough. With -f they are those of manifests, as kubectl prints them.

-o report writes a report for each namespace with findings, and removes those of the others:
Reports of openreports.io/v1alpha1, or else PolicyReports of wgpolicyk8s.io/v1alpha2. It
takes the right to list, create, patch and delete them. With any other -o nothing is
written.

Exit status: 0; with --fail-on 2 if there is such a finding, whatever its mode; 1 if
something cannot be read.`,
		Example: `  runtimeclass-router audit --context prod
  runtimeclass-router audit --context prod --enforced --fail-on below-floor -o json
  kubectl get namespaces,pods -A -o json | runtimeclass-router audit -f - --cluster cluster.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.after, "policy", "shipped", "the policy, named as for policy check")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest file, a directory of them, or - for standard input; may be repeated")
	flags.StringVar(&o.context, "context", "", "look at this kubeconfig context")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "look at the current context of this kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "of a live cluster, only the pods of this namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "of a live cluster, only the pods with these labels, as for kubectl")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", exemptNamespaces(), exemptNamespacesUsage)
	flags.StringVarP(&o.output, "output", "o", "table", "table, json, or report (objects in the cluster)")
	flags.StringVar(&o.failOn, "fail-on", "", "below-floor or any: exit with status 2 if there is such a finding")
	flags.BoolVar(&o.enforced, "enforced", false, "only what is found in namespaces in mode enforce")
	return cmd
}

// validate finds flags that do not go together.
func (o *auditOptions) validate() error {
	live, filtered := o.context != "" || o.kubeconfig != "", o.namespace != "" || o.selector != ""
	_, selectorErr := labels.Parse(o.selector)
	switch {
	case !slices.Contains([]string{"table", "json", "report"}, o.output):
		return fmt.Errorf("--output %q: use table, json or report", o.output)
	case !slices.Contains([]string{"", string(audit.BelowFloor), "any"}, o.failOn):
		return fmt.Errorf("--fail-on %q: use below-floor or any", o.failOn)
	case len(o.files) == 0 && !live:
		return errors.New("nothing to look at: name manifests with -f, or a live cluster with --context or --kubeconfig")
	case len(o.files) > 0 && filtered:
		return errors.New("-n and -l choose among the pods of a live cluster: leave out -f")
	case o.output == "report" && (len(o.files) > 0 || o.selector != ""):
		return errors.New("-o report writes what a namespace's pods are like into the cluster: leave out -f and -l")
	case selectorErr != nil:
		return fmt.Errorf("--selector: %w", selectorErr)
	}
	return nil
}

func (o *auditOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	var kube *rest.Config
	var reports *audit.Reports
	if len(o.files) == 0 {
		if kube, err = kubeConfig(o.kubeconfig, o.context); err != nil {
			return err
		}
	}
	if o.output == "report" { // before what takes long
		if reports, err = audit.NewReports(ctx, kube); err != nil {
			return fmt.Errorf("%w; -o table and -o json print the findings instead", err)
		}
	}
	stream, err := survey.Open(o.files, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	auditor, err := o.prepare(ctx, stream)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as policy diff does, and why
	tally := audit.NewTally(0, o.enforced)
	look := func(ctx context.Context, position int, document *catalog.Document) error {
		looked, err := auditor.Look(ctx, document)
		if looked != nil && err == nil {
			tally.Add(position, looked)
		}
		return err
	}
	bar := newProgress(errOut)
	some, err := o.each(ctx, stream, kube, look, bar, errOut)
	bar.done()
	if err != nil {
		return err
	}
	report := tally.Report()
	if reports != nil && some != nil {
		return errors.Join(some, errors.New("no report is written: it would tell half"))
	}
	if err := o.write(ctx, out, reports, report); err != nil {
		return err
	}
	if some != nil {
		return some
	}
	if o.failOn == "any" && len(report.Findings) > 0 || o.failOn != "" && report.Found[audit.BelowFloor] > 0 {
		return exitError{code: exitFound}
	}
	return nil
}

// each looks at every pod. It returns what could not be looked at beside the rest, and an
// error without which there is nothing to report.
func (o *auditOptions) each(ctx context.Context, stream *survey.Manifests, kube *rest.Config, look func(context.Context, int, *catalog.Document) error, bar *progress, notes io.Writer) (some, all error) {
	if kube == nil {
		return survey.Each(ctx, stream.Items(bar), look), context.Cause(ctx)
	}
	pods, err := survey.NewPods(kube, o.namespace, o.selector, notes)
	if err != nil {
		return nil, err
	}
	some = survey.Each(ctx, pods.Items(ctx, bar), look)
	return some, cmp.Or(context.Cause(ctx), pods.Err())
}

// prepare loads the policy over the cluster.
func (o *auditOptions) prepare(ctx context.Context, stream *survey.Manifests) (*audit.Auditor, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	cluster, namespaces, err := o.around(ctx, stream)
	if err != nil {
		return nil, err
	}
	side, err := o.side(ctx, "policy", o.after, config, cluster)
	if err != nil {
		return nil, err
	}
	return &audit.Auditor{
		Side: side, Exempt: o.exempt, Now: time.Now,
		Namespace: func(_ context.Context, name string) (*catalog.Namespace, error) {
			if namespace, ok := namespaces[name]; ok {
				return namespace, nil
			}
			return &catalog.Namespace{Name: name}, nil // as for route: without labels
		},
	}, nil
}
