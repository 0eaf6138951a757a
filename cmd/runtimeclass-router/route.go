package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/catalog/informers"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// exampleCluster stands in where no cluster is named.
//
//go:embed cluster.yaml
var exampleCluster []byte

// exemptNamespaces are those of the chart as shipped; a flag names others.
func exemptNamespaces() []string {
	return []string{"kube-system", "kube-node-lease", "runtimeclass-router"}
}

const exemptNamespacesUsage = "namespaces whose pods the webhook is not asked about: the chart's exemptNamespaces and the release's own"

type routeOptions struct {
	files, cluster      []string
	clusterStdin        io.Reader // what --cluster - reads, if a command has no other use for it
	kubeconfig, context string
	configFile, output  string
	failOnDeny          bool
	exempt              []string
}

func newRouteCommand() *cobra.Command {
	o := &routeOptions{}
	cmd := &cobra.Command{
		Use:   "route -f FILE...",
		Short: "Say what would happen to the pods of some manifests",
		Long: `Say what the webhook would do with the pods and workloads of some manifests, and why.

Namespaces are taken from the manifests too; one that is not there counts as without
labels. What the cluster can run is taken from --cluster files, or from a live cluster
(--context or --kubeconfig), or from RuntimeClasses and Nodes among the manifests, or
else from an embedded example cluster: crun, gvisor, kata-fc, kata-clh and kata-qemu
with one ready node each.

Exit status: 0; with --fail-on-deny 2 if a pod is denied; 1 if a document or a policy
is faulty. What could be decided is printed all the same.`,
		Example: `  runtimeclass-router route -f examples/
  kubectl get deployments -A -o yaml | runtimeclass-router route -f - --context prod -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest file, a directory of them, or - for standard input; may be repeated")
	flags.StringArrayVar(&o.cluster, "cluster", nil, "a file or directory with the cluster's RuntimeClasses, Nodes and Namespaces; may be repeated")
	flags.StringVar(&o.context, "context", "", "take the cluster's state from this kubeconfig context")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "take the cluster's state from the current context of this kubeconfig")
	flags.StringVar(&o.configFile, "config", "", "the configuration file that the webhook runs with")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json, or yaml (the manifests as they would be admitted)")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", exemptNamespaces(), exemptNamespacesUsage)
	flags.BoolVar(&o.failOnDeny, "fail-on-deny", false, "exit with status 2 if any pod is denied")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (o *routeOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	write, ok := routeWriters[o.output]
	if !ok {
		return fmt.Errorf("--output %q: use table, json or yaml", o.output)
	}
	c, err := loadConfig(o.configFile)
	if err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	manifests, readErr := catalog.ReadManifests(o.files, in)
	cluster, namespaces, err := o.clusterState(ctx, manifests)
	if err != nil {
		return err
	}
	for name, namespace := range manifests.Namespaces() {
		namespaces[name] = namespace // what is about to be applied wins over what is there
	}
	engine := policies.NewEngine()
	modules, notes, err := c.modules()
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(errOut, "note: %s\n", note)
	}
	if err := engine.Load(ctx, modules, c.router); err != nil {
		return fmt.Errorf("load policy: %w", err)
	}
	if err := engine.SetCatalog(ctx, cluster); err != nil {
		return err
	}
	results := routeManifests(ctx, &webhook.Router{Engine: engine}, manifests, namespaces, o.exempt, time.Now())
	for _, r := range results {
		for _, note := range r.Notes {
			fmt.Fprintf(errOut, "note: %s\n", note)
		}
	}
	if err := write(out, results); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	errs := []error{readErr}
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.failOnDeny && slices.ContainsFunc(results, result.denied) {
		return exitError{code: 2}
	}
	return nil
}

// clusterState finds what the cluster can run, and its namespaces.
func (o *routeOptions) clusterState(ctx context.Context, manifests *catalog.Manifests) (*catalog.Catalog, map[string]*catalog.Namespace, error) {
	live := o.context != "" || o.kubeconfig != ""
	switch {
	case len(o.cluster) > 0 && live:
		return nil, nil, errors.New("--cluster names files and --context or --kubeconfig a live cluster: give one of them")
	case len(o.cluster) > 0:
		files, err := catalog.ReadManifests(o.cluster, o.clusterStdin)
		if err != nil {
			return nil, nil, fmt.Errorf("--cluster: %w", err)
		}
		return files.Catalog(), files.Namespaces(), nil
	case live:
		kube, err := kubeConfig(o.kubeconfig, o.context)
		if err != nil {
			return nil, nil, err
		}
		return informers.Read(ctx, kube)
	case manifests.HasRuntimeClasses():
		return manifests.Catalog(), map[string]*catalog.Namespace{}, nil
	}
	example := &catalog.Manifests{}
	if err := example.Add("embedded example cluster", exampleCluster); err != nil {
		return nil, nil, err
	}
	return example.Catalog(), map[string]*catalog.Namespace{}, nil
}

// kubeConfig is how a live cluster is reached, by the flags --kubeconfig and --context.
func kubeConfig(file, name string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	return config, nil
}
