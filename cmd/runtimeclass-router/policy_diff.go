package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// exitNewlyDenied is the status where a pod is admitted before and not after.
const exitNewlyDenied = 3

type policyDiffOptions struct {
	policyOptions
	before, after, output string
	files, labels, exempt []string

	kubeconfig, context string
	namespace, selector string
}

func newPolicyDiffCommand() *cobra.Command {
	o := &policyDiffOptions{}
	cmd := &cobra.Command{
		Use:   "diff (-f FILE... | --context NAME | --kubeconfig FILE)",
		Short: "Say which pods a change of policy or labels moves",
		Long: `Route pods and workloads under an old and a new policy, and print those whose route
differs, by owner. Policies are named as for policy check, or "shipped". --set-label
NAMESPACE:KEY=VALUE changes a namespace's label on the new side, and NAMESPACE:KEY-
removes it.

With -f they are those of manifests. Namespaces are taken from the manifests too, the
cluster from --cluster, or from a live one (--context or --kubeconfig), or RuntimeClasses
among the manifests, or else the embedded example. One document is held at a time, and of
a JSON list as kubectl prints it one item; a list in YAML is held as a whole.

Without -f they are the pods of the live cluster, read by the page. It takes the right to
list pods, namespaces, nodes and runtimeclasses.node.k8s.io, across namespaces; with -n
pods in that one are enough. Nothing is written.

A pod that a cluster has run, live or as kubectl prints it, stands for the next one of its
owner: the node that the scheduler bound it to, and what the webhook wrote into it, do not
count. FROM is what the old policy says of that pod today, not what runs.

Exit status: 0; 3 if a pod is admitted under the old and denied, or met with a policy
error, under the new one; 1 if something cannot be read.`,
		Example: `  runtimeclass-router policy diff --old deployed/ --new policy/ -f manifests/
  runtimeclass-router policy diff --context prod --set-label shop:runtimeclass-router.io/trust=untrusted`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.before, "old", "shipped", "the policy as it is")
	flags.StringVar(&o.after, "new", "shipped", "the policy as it will be")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest file, a directory of them, or - for standard input; may be repeated")
	flags.StringVar(&o.context, "context", "", "compare over this kubeconfig context")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "compare over the current context of this kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "of a live cluster, only the pods of this namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "of a live cluster, only the pods with these labels, as for kubectl")
	flags.StringArrayVar(&o.labels, "set-label", nil, "a label that a namespace will have, as NAMESPACE:KEY=VALUE; may be repeated")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", exemptNamespaces(), exemptNamespacesUsage)
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	return cmd
}

// validate finds flags that do not go together.
func (o *policyDiffOptions) validate() error {
	live := o.context != "" || o.kubeconfig != ""
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: use table or json", o.output)
	}
	switch filtered := o.namespace != "" || o.selector != ""; {
	case len(o.files) == 0 && !live:
		return errors.New("nothing to compare: name manifests with -f, or a live cluster with --context or --kubeconfig")
	case len(o.files) > 0 && filtered:
		return errors.New("-n and -l choose among the pods of a live cluster: leave out -f")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	return nil
}

func (o *policyDiffOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	labels, err := parseSetLabels(o.labels)
	if err != nil {
		return err
	}
	stream, err := survey.Open(o.files, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	d := &difference{exempt: o.exempt, now: time.Now(), met: map[string]bool{}}
	if err := o.prepare(ctx, stream, d, labels); err != nil {
		return err
	}
	// A decision leaves much garbage and nothing that stays. To collect it less often takes a
	// quarter of the time off, for a few tens of megabytes.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	bar := newProgress(errOut)
	compareErr, err := o.compare(ctx, stream, d, bar, errOut)
	bar.done()
	if err != nil {
		return err
	}
	d.note(errOut, labels)
	report := d.report()
	if err := writeDiff(out, o.output, report); err != nil {
		return err
	}
	if compareErr != nil {
		return compareErr
	}
	if report.NewlyDenied > 0 {
		return exitError{code: exitNewlyDenied}
	}
	return nil
}

// compare returns what could not be compared beside the rest, and an error without which
// there is nothing to report.
func (o *policyDiffOptions) compare(ctx context.Context, stream *survey.Manifests, d *difference, bar *progress, notes io.Writer) (some, all error) {
	if len(o.files) > 0 {
		return survey.Each(ctx, stream.Items(bar), d.route), context.Cause(ctx)
	}
	config, err := kubeConfig(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	pods, err := survey.NewPods(config, o.namespace, o.selector, notes)
	if err != nil {
		return nil, err
	}
	some = survey.Each(ctx, pods.Items(ctx, bar), d.route)
	return some, cmp.Or(context.Cause(ctx), pods.Err())
}

// prepare reads what the decisions on pods need, which may stand behind them, and loads
// both policies. What cannot be read is said when the pods are compared.
func (o *policyDiffOptions) prepare(ctx context.Context, stream *survey.Manifests, d *difference, labels map[string]map[string]*string) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	cluster, namespaces, err := o.around(ctx, stream)
	if err != nil {
		return err
	}
	d.cluster, d.namespaces, d.relabelled = cluster, namespaces, relabel(namespaces, labels)
	if d.before, err = o.side(ctx, "old", o.before, config, cluster); err != nil {
		return err
	}
	if d.after = d.before; o.after != o.before {
		d.after, err = o.side(ctx, "new", o.after, config, cluster)
	}
	return err
}

// around is the cluster that pods are in, with the namespaces among the manifests.
func (o *policyDiffOptions) around(ctx context.Context, stream *survey.Manifests) (*catalog.Catalog, map[string]*catalog.Namespace, error) {
	around := &catalog.Manifests{}
	kinds := []string{"Namespace", "RuntimeClass", "Node"}
	for document, err := range stream.Documents(kinds...) {
		if err == nil && slices.Contains(kinds, document.GVK.Kind) {
			around.Documents = append(around.Documents, *document)
		}
	}
	state := &routeOptions{cluster: o.cluster, kubeconfig: o.kubeconfig, context: o.context}
	cluster, namespaces, err := state.clusterState(ctx, around)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(namespaces, around.Namespaces())
	return cluster, namespaces, nil
}

// side loads one of the two policies; flag names it in errors.
func (o *policyDiffOptions) side(ctx context.Context, flag, path string, config policies.Config, cluster *catalog.Catalog) (*survey.Side, error) {
	source, modules, err := readPolicy(path, o.mode)
	var engine *policies.Engine
	if err == nil {
		engine, err = o.engine(ctx, modules, config, cluster)
	}
	if err == nil {
		return &survey.Side{Source: source, Router: &webhook.Router{Engine: engine}}, nil
	}
	var errs []error
	for _, p := range source.Problems(err) {
		errs = append(errs, fmt.Errorf("--%s: %v", flag, p))
	}
	return nil, errors.Join(errs...)
}
