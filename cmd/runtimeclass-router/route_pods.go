package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// result is the route of one pod or workload; its JSON is the output of -o json.
type result struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	webhook.Route

	// Err is set where nothing could be decided; Route is then empty.
	Err   error    `json:"-"`
	Notes []string `json:"-"`
	// document and template are the manifest and where in it the pod is.
	document *catalog.Document
	template webhook.Template
}

func (r result) denied() bool { return r.Action == policies.Deny && r.Mode == policies.Enforce }

// routeManifests routes every pod and workload, in the order of the manifests.
func routeManifests(ctx context.Context, router *webhook.Router, manifests *catalog.Manifests, namespaces map[string]*catalog.Namespace, now time.Time) []result {
	results := []result{}
	for i := range manifests.Documents {
		document := &manifests.Documents[i]
		template, ok := webhook.Templates[document.GVK.Kind]
		if !ok || document.Object == nil {
			continue
		}
		r := result{Kind: document.GVK.Kind, document: document, template: template}
		r.route(ctx, router, namespaces, now)
		results = append(results, r)
	}
	return results
}

func (r *result) route(ctx context.Context, router *webhook.Router, namespaces map[string]*catalog.Namespace, now time.Time) {
	fail := func(err error) {
		r.Err = fmt.Errorf("%s: document %d: %s %s: %w", r.document.File, r.document.Index, r.Kind, r.Name, err)
	}
	object, ok := r.document.Object.(metav1.Object)
	if !ok {
		fail(fmt.Errorf("a %T has no metadata", r.document.Object))
		return
	}
	r.Namespace, r.Name = cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), cmp.Or(object.GetName(), object.GetGenerateName())
	for _, w := range r.document.Warnings {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: document %d: %s %s: %s", r.document.File, r.document.Index, r.Kind, r.Name, w))
	}
	namespace, ok := namespaces[r.Namespace]
	if !ok {
		namespace = &catalog.Namespace{Name: r.Namespace}
		r.Notes = append(r.Notes, fmt.Sprintf("%s %s: namespace %s is not among the manifests and counts as without labels", r.Kind, r.Name, r.Namespace))
	}
	pod, err := r.template.Pod(r.document.Raw, r.Name)
	if err != nil {
		fail(err)
		return
	}
	r.Route, err = router.Route(ctx, policies.Input{
		Request:   policies.Request{Operation: "CREATE", Namespace: r.Namespace, Date: now.UTC().Format(time.DateOnly)},
		Namespace: *namespace,
		Pod:       pod,
	})
	if err != nil {
		fail(err)
	}
}
