package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// exitNewlyDenied is the status where a pod is admitted before and not after.
const exitNewlyDenied = 3

type policyDiffOptions struct {
	policyOptions
	before, after, output string
	files, labels         []string
}

func newPolicyDiffCommand() *cobra.Command {
	o := &policyDiffOptions{}
	cmd := &cobra.Command{
		Use:   "diff -f FILE...",
		Short: "Say which pods a change of policy or labels moves",
		Long: `Route the pods and workloads of manifests under an old and a new policy, and print those
whose route differs, by owner. Policies are named as for policy check, or "shipped".
--set-label NAMESPACE:KEY=VALUE changes a namespace's label on the new side, and
NAMESPACE:KEY- removes it.

Namespaces are taken from the manifests, the cluster from --cluster, or RuntimeClasses
among the manifests, or else the embedded example. One document is held at a time, and
of a JSON list as kubectl prints it one item; a list in YAML is held as a whole.

Exit status: 0; 3 if a pod is admitted under the old and denied, or met with a policy
error, under the new one; 1 if something cannot be read.`,
		Example: `  runtimeclass-router policy diff --old deployed/ --new policy/ -f manifests/
  kubectl get namespaces,pods -A -o json | runtimeclass-router policy diff -f - --set-label shop:runtimeclass-router.io/trust=untrusted`,
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
	flags.StringArrayVar(&o.labels, "set-label", nil, "a label that a namespace will have, as NAMESPACE:KEY=VALUE; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (o *policyDiffOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) (err error) {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: use table or json", o.output)
	}
	labels, err := parseSetLabels(o.labels)
	if err != nil {
		return err
	}
	stream, err := openStream(o.files, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	d := &difference{now: time.Now(), changes: map[change]*counted{}, met: map[string]bool{}}
	if err := o.prepare(ctx, stream, d, labels); err != nil {
		return err
	}
	bar := newProgress(errOut, stream.size)
	var errs []error
	for document, err := range stream.documents(bar.at) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // and no policy is at fault
		}
		if err == nil {
			err = d.route(ctx, document)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	bar.done()
	for name := range labels {
		if !d.met[name] {
			fmt.Fprintf(errOut, "note: --set-label: no pod or workload of the manifests is in namespace %s\n", name)
		}
	}
	report := d.report()
	if err := writeDiff(out, o.output, report); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if report.NewlyDenied > 0 {
		return exitError{code: exitNewlyDenied}
	}
	return nil
}

// prepare reads what the decisions on pods need, which may stand behind them, and loads
// both policies. What cannot be read is said when the pods are compared.
func (o *policyDiffOptions) prepare(ctx context.Context, stream *stream, d *difference, labels map[string]map[string]*string) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	around := &catalog.Manifests{}
	kinds := []string{"Namespace", "RuntimeClass", "Node"}
	for document, err := range stream.documents(nil, kinds...) {
		if err == nil && slices.Contains(kinds, document.GVK.Kind) {
			around.Documents = append(around.Documents, *document)
		}
	}
	cluster, namespaces, err := (&routeOptions{cluster: o.cluster}).clusterState(ctx, around)
	if err != nil {
		return err
	}
	maps.Copy(namespaces, around.Namespaces())
	d.namespaces, d.relabelled = namespaces, relabel(namespaces, labels)
	if d.before, err = o.side(ctx, "old", o.before, config, cluster); err != nil {
		return err
	}
	d.after, err = o.side(ctx, "new", o.after, config, cluster)
	return err
}

// side loads one of the two policies; flag names it in errors.
func (o *policyDiffOptions) side(ctx context.Context, flag, path string, config policies.Config, cluster *catalog.Catalog) (*side, error) {
	source, modules, err := readPolicy(path, o.mode)
	var engine *policies.Engine
	if err == nil {
		engine, err = o.engine(ctx, modules, config, cluster)
	}
	if err == nil {
		return &side{source: source, router: &webhook.Router{Engine: engine}}, nil
	}
	var errs []error
	for _, p := range source.Problems(err) {
		errs = append(errs, fmt.Errorf("--%s: %v", flag, p))
	}
	return nil, errors.Join(errs...)
}
