package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
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

// explain decides once more.
func (o *whyOptions) explain(ctx context.Context, client kubernetes.Interface, files *catalog.Manifests, document *catalog.Document) (*whyReport, error) {
	_, stored, err := survey.Read(document, nil, time.Now())
	if err != nil {
		return nil, err
	}
	around := &around{}
	if around.selection, err = o.selection(ctx, client, around); err != nil {
		return nil, err
	}
	report, err := newWhyReport(stored)
	if err != nil {
		return nil, stored.At(err)
	}
	switch {
	case around.selection.Skips(stored.Namespace, nil, nil):
		report.skipped(fmt.Sprintf("namespace %q is exempt: the API server does not ask the webhook about its pods", stored.Namespace))
	case stored.Mirrors():
		report.skipped("it is a static pod of a node: the kubelet announces it, and the webhook lets it pass")
	default:
		if err := o.decide(ctx, client, files, stored, around, report); err != nil {
			return nil, err
		}
	}
	report.Read, report.Assumed = append(report.Read, around.read...), append(report.Assumed, around.assumed...)
	return report, nil
}

func (o *whyOptions) decide(ctx context.Context, client kubernetes.Interface, files *catalog.Manifests, stored *survey.Subject, around *around, report *whyReport) error {
	if err := around.look(ctx, client, files, stored.Namespace); err != nil {
		return err
	}
	if around.selection.Skips(stored.Namespace, around.namespace.Labels, report.Labels.Pod) {
		report.skipped(fmt.Sprintf("namespace %q is labelled trust=%s, and the API server does not ask the webhook about pods of such, unless they lower themselves (webhook.skipTrusted)",
			stored.Namespace, around.namespace.Labels[catalog.LabelTrust]))
		return nil
	}
	side, err := o.side(ctx, client, around, report)
	if err != nil {
		return err
	}
	next := *stored.Document
	if stored.Kind == "Pod" {
		recreated, err := survey.Recreate(next.Raw, around.catalog)
		if err != nil {
			return stored.At(err)
		}
		next.Raw = recreated.Raw
		if recreated.Replaced {
			around.assume("the pod's creator asked for a class that the webhook replaced, and which one is not recorded: it counts as asking for none")
		}
	}
	input, _, err := survey.Read(&next, map[string]*catalog.Namespace{stored.Namespace: around.namespace}, time.Now())
	if err != nil {
		return err
	}
	report.Labels.Namespace = ours(around.namespace.Labels)
	if err := report.decide(ctx, side, input); err != nil {
		return stored.At(err)
	}
	return nil
}

// selection is whose pods the webhook is asked about: but for the namespaces of the flag, else
// by the webhook configuration, else as the chart is shipped.
func (o *whyOptions) selection(ctx context.Context, client kubernetes.Interface, around *around) (registration.Selection, error) {
	shipped := registration.Selection{Exempt: exemptNamespaces()}
	if len(o.exempt) > 0 {
		return registration.Selection{Exempt: o.exempt}, nil
	}
	if client == nil {
		return shipped, nil
	}
	stored, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, o.release.name, metav1.GetOptions{})
	if err == nil && len(stored.Webhooks) > 0 {
		return registration.Select(stored.Webhooks[0].NamespaceSelector), nil
	}
	if err != nil && !unreadable(err) {
		return shipped, fmt.Errorf("get mutatingwebhookconfiguration %s: %w", o.release.name, err)
	}
	around.assume("the webhook configuration of release %s %s: namespaces %s are taken to be exempt, as shipped; name others with --exempt-namespaces", o.release.name,
		lacking(err, "get mutatingwebhookconfigurations/"+o.release.name), strings.Join(shipped.Exempt, ", "))
	return shipped, nil
}

// side is the policy that answers: what the flags name, else the release's, else the shipped
// one, and then that is an assumption.
func (o *whyOptions) side(ctx context.Context, client kubernetes.Interface, around *around, report *whyReport) (*survey.Side, error) {
	var a *answering
	var err error
	if client != nil && o.policy == "" && o.configFile == "" {
		a, err = o.release.deployed(ctx, client)
		if err != nil && !unreadable(err) {
			return nil, err
		}
		if err != nil {
			around.assume("the policy of release %s %s: the shipped one answers in its place; name that of your admins with --policy and --config", o.release.name,
				lacking(err, fmt.Sprintf("get configmaps/%s and list configmaps in namespace %s", o.release.configMap(), o.release.namespace)))
		}
	}
	if a == nil {
		if a, err = o.answering(o.policy); err != nil {
			return nil, err
		}
	}
	around.assumed = append(around.assumed, a.notes...)
	engine := policies.NewEngine()
	if err := engine.Load(ctx, a.modules, a.config.router); err != nil {
		return nil, fmt.Errorf("load policy: %w", errors.Join(located(a.source, err)...))
	}
	if err := engine.SetCatalog(ctx, around.catalog); err != nil {
		return nil, err
	}
	snapshot, err := engine.Snapshot()
	if err != nil {
		return nil, err
	}
	report.Policy = &whyPolicy{From: a.said, Revision: snapshot.Revision()}
	return &survey.Side{Source: a.source, Router: &webhook.Router{Engine: engine}}, nil
}
