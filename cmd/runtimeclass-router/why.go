package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

type whyOptions struct {
	policyOptions
	release             releaseOptions
	policy, output      string
	files, exempt       []string
	kubeconfig, context string
	namespace           string
}

func newWhyCommand() *cobra.Command {
	o := &whyOptions{}
	cmd := &cobra.Command{
		Use:   "why (POD | KIND/NAME | -f FILE...)",
		Short: "Say why a pod runs under what it does, and what it would get today",
		Long: `Say what was decided for a pod when it was created, what would be decided today, where
the two differ, and the steps: labels, trust, profile, and each candidate with what
rules it out. For a workload (KIND/NAME, deploy/web say) it is the pod that it would
create next.

What was decided is read from annotations of the pod. Whoever may write the pod may have
written them: they are what is recorded, and no evidence.

It takes the right to get the pod or workload. The namespace, RuntimeClasses and nodes are
read if they may be; what may not be read is listed with what is assumed in its place, and
--cluster gives it from files. So is the policy: that of the release, if its ConfigMap may be
read, else the shipped one, or what --policy and --config name. The output says which.

With -f the pod or workload is that of a manifest, and no cluster is asked unless one is
named. A name chooses among several.

Exit status: 0, also for a denial; 1 if something cannot be read or decided.`,
		Example: `  runtimeclass-router why web-7d9c5b4f6-x2x9k -n shop
  runtimeclass-router why deploy/web -n shop --cluster cluster.yaml
  kubectl get pod web-0 -o yaml | runtimeclass-router why -f - --cluster cluster.yaml -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.mode, "mode", "extend", "what --policy does: extend: together with the shipped policy; replace: in its place")
	flags.StringVar(&o.configFile, "config", "", "the configuration file that the webhook runs with")
	flags.StringVar(&o.policy, "policy", "", "the policy that the webhook runs with, named as for policy check")
	flags.StringArrayVar(&o.cluster, "cluster", nil, "a file or directory with Namespaces, RuntimeClasses and Nodes, each kind in place of the cluster's; may be repeated")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest file, a directory of them, or - for standard input; may be repeated")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the namespace; without it that of the kubeconfig's context")
	flags.StringVar(&o.context, "context", "", "ask the cluster of this kubeconfig context")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "ask the cluster of this kubeconfig")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", nil, exemptNamespacesUsage+"; without it those of the webhook configuration, if it may be read")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	o.release.addFlags(cmd)
	return cmd
}

func (o *whyOptions) run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %q: use text or json", o.output)
	}
	if len(args) == 0 && len(o.files) == 0 {
		return errors.New("name a pod, or a workload as KIND/NAME, or a manifest with -f")
	}
	w, err := parseWanted(args)
	if err != nil {
		return err
	}
	files, err := catalog.ReadManifests(o.cluster, nil)
	if err != nil {
		return fmt.Errorf("--cluster: %w", err)
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	var document *catalog.Document
	if len(o.files) > 0 {
		manifests, err := catalog.ReadManifests(o.files, in)
		if err != nil {
			return err
		}
		files = layered(files, manifests)
		document, err = w.among(manifests, o.namespace)
		if err != nil {
			return err
		}
	} else if document, err = w.of(ctx, client, o.namespace); err != nil {
		return err
	}
	report, err := o.explain(ctx, client, files, document)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return encodeJSON(out, report)
	}
	_, err = io.WriteString(out, report.text())
	return err
}

// client is of the cluster that is asked, and nil where none is.
func (o *whyOptions) client() (kubernetes.Interface, error) {
	if len(o.files) > 0 && o.context == "" && o.kubeconfig == "" {
		return nil, nil
	}
	config, err := kubeConfig(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	if o.namespace == "" {
		if o.namespace, err = contextNamespace(o.kubeconfig, o.context); err != nil {
			return nil, err
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}
