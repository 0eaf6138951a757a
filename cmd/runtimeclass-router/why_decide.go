package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

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
