package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/doctor"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// doctorStatus is the exit status by the weightiest finding.
var doctorStatus = map[doctor.Severity]int{doctor.OK: 0, doctor.Note: 0, doctor.Unknown: 2, doctor.Warning: 2, doctor.Error: 3}

type doctorOptions struct {
	policyOptions
	release             releaseOptions
	policy, output      string
	files, exempt, skip []string
	kubeconfig, context string
	namespace           string
}

func newDoctorCommand() *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what stands in the way of enforcing, each with the next command",
		Long: `Look at a live cluster before you enforce: RuntimeClasses without a ready node, nodes that
do not say what they can run, pods that would be denied if every namespace were enforced,
namespaces to label first, guards that are missing or do nothing, and exceptions and
certificates that are about to expire. Each finding has the command to go on with.

The cluster is that of the kubeconfig's current context. Nothing is written, and no right but
reading is taken. A check that may not read what it needs is unknown, and names the right;
to leave one out on purpose, --skip it. -n looks at the pods of one namespace.

The policy is that of the release, unless --policy or --config name another. If it may not be
read, the shipped one answers, and the check policy says so.

With -f or --cluster, manifests take the place of the cluster: pods and workloads, and the
Namespaces, RuntimeClasses and Nodes around them. The release's own objects are not looked
for there.

The checks: ` + strings.Join(doctor.Names(), ", ") + `.

Exit status: 0 if all is well, or there is a note; 2 if there is a warning, or something is
unknown; 3 if there is an error; 1 if the command could not do its work.`,
		Example: `  runtimeclass-router doctor
  runtimeclass-router doctor --context prod --skip certificate -o json
  kubectl get namespaces,runtimeclasses,nodes,pods -A -o json | runtimeclass-router doctor -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.mode, "mode", "extend", "what --policy does: extend: together with the shipped policy; replace: in its place")
	flags.StringVar(&o.configFile, "config", "", "the configuration file that the webhook runs with")
	flags.StringVar(&o.policy, "policy", "", "the policy that the webhook runs with, named as for policy check")
	flags.StringArrayVar(&o.cluster, "cluster", nil, "a file or directory with Namespaces, RuntimeClasses and Nodes; may be repeated")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest file with pods, a directory of them, or - for standard input; may be repeated")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "look at the pods of this namespace only")
	flags.StringVar(&o.context, "context", "", "look at the cluster of this kubeconfig context")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "look at the cluster of this kubeconfig")
	flags.StringSliceVar(&o.exempt, "exempt-namespaces", exemptNamespaces(), exemptNamespacesUsage+", where the webhook configuration cannot be read")
	flags.StringSliceVar(&o.skip, "skip", nil, "checks to leave out")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	o.release.addFlags(cmd)
	return cmd
}

func (o *doctorOptions) validate() error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %q: use text or json", o.output)
	}
	for _, name := range o.skip {
		if !slices.Contains(doctor.Names(), name) {
			return fmt.Errorf("--skip %q: the checks are %s", name, strings.Join(doctor.Names(), ", "))
		}
	}
	if manifests := len(o.files)+len(o.cluster) > 0; manifests && (o.context != "" || o.kubeconfig != "" || o.namespace != "") {
		return errors.New("-f and --cluster name files, and --context, --kubeconfig and -n a live cluster: give one of them")
	}
	return nil
}

func (o *doctorOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	bar := newProgress(errOut)
	examine := o.live
	if len(o.files)+len(o.cluster) > 0 {
		examine = o.manifests
	}
	findings, err := examine(ctx, in, errOut, bar)
	bar.done()
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = encodeJSON(out, findings)
	} else {
		err = writeDoctor(out, findings)
	}
	if err != nil {
		return err
	}
	if status := doctorStatus[doctor.Worst(findings)]; status != 0 {
		return exitError{code: status}
	}
	return nil
}

func (o *doctorOptions) live(ctx context.Context, _ io.Reader, errOut io.Writer, bar *progress) ([]doctor.Finding, error) {
	config, err := kubeConfig(o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	options := doctor.Live{
		Config: config, Release: doctor.Release{Name: o.release.name, Namespace: o.release.namespace},
		Namespace: o.namespace, Exempt: o.exempt, Notes: errOut, Progress: bar,
	}
	cluster, err := doctor.Read(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := o.hold(ctx, client, cluster, errOut); err != nil {
		return nil, err
	}
	if err := cluster.ReadCertificate(ctx, options); err != nil {
		return nil, err
	}
	return doctor.Run(ctx, cluster, o.skip)
}

func (o *doctorOptions) manifests(ctx context.Context, in io.Reader, errOut io.Writer, bar *progress) (_ []doctor.Finding, err error) {
	pods, err := survey.Open(o.files, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pods.Close()) }()
	around, err := catalog.ReadManifests(o.cluster, nil)
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	kinds := []string{"Namespace", "RuntimeClass", "Node"}
	beside := &catalog.Manifests{}
	for document, err := range pods.Documents(kinds...) {
		if err == nil && slices.Contains(kinds, document.GVK.Kind) { // an error is told when the pods are judged
			beside.Documents = append(beside.Documents, *document)
		}
	}
	cluster := doctor.Files(doctor.Release{Name: o.release.name, Namespace: o.release.namespace}, o.exempt, pods, layered(around, beside), bar)
	if err := o.hold(ctx, nil, cluster, errOut); err != nil {
		return nil, err
	}
	return doctor.Run(ctx, cluster, o.skip)
}

// hold holds the cluster against the policy of the flags, else the release's, else the
// shipped one. A policy that does not load is a finding.
func (o *doctorOptions) hold(ctx context.Context, client kubernetes.Interface, cluster *doctor.Cluster, errOut io.Writer) error {
	var a *answering
	given := o.policy != "" || o.configFile != ""
	if client != nil && !given {
		var err error
		if a, err = o.release.deployed(ctx, client); err != nil {
			cluster.Unsettled(fmt.Sprintf("needs get configmaps/%s and list configmaps in namespace %s, or --config and --policy: the shipped policy is asked in place of the release's (%v)",
				o.release.configMap(), o.release.namespace, err), fmt.Sprintf("kubectl get configmap %s --namespace %s", o.release.configMap(), o.release.namespace))
			a = nil
		}
	}
	if a == nil {
		var err error
		if a, err = o.answering(o.policy); err != nil {
			return err
		}
		if client == nil && !given {
			cluster.Unsettled("needs --config and --policy, or a live cluster: the shipped policy is asked", "runtimeclass-router doctor --context NAME")
		}
	}
	for _, note := range a.notes {
		fmt.Fprintf(errOut, "note: %s\n", note)
	}
	p := &doctor.Policy{Config: a.config.router, SelfSigned: a.config.Certs.Mode == certs.Self, SecretName: a.config.Certs.SecretName}
	if p.SecretName == "" {
		p.SecretName = o.release.name + "-tls"
	}
	engine := policies.NewEngine()
	err := engine.Load(ctx, a.modules, a.config.router)
	if err == nil {
		err = engine.SetCatalog(ctx, cluster.Catalog())
	}
	if err != nil {
		cluster.Unheld(fmt.Sprintf("needs a policy that loads, and %s does not: %v", a.said, errors.Join(located(a.source, err)...)),
			fmt.Sprintf("kubectl get configmaps --namespace %s --selector %s=%s", o.release.namespace, catalog.LabelPolicy, catalog.PolicyLabelValue))
	} else {
		p.Side = &survey.Side{Source: a.source, Router: &webhook.Router{Engine: engine}}
	}
	cluster.Hold(p)
	return nil
}
