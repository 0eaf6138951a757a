package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// routeManifests routes every pod and workload, in the order of the manifests. Pods in
// exempt namespaces are never sent to the webhook.
func routeManifests(ctx context.Context, router *webhook.Router, manifests *catalog.Manifests, namespaces map[string]*catalog.Namespace, exempt []string, now time.Time) []result {
	results := []result{}
	for i := range manifests.Documents {
		in, r, err := inputOf(&manifests.Documents[i], namespaces, now)
		if r == nil {
			continue
		}
		switch {
		case err != nil:
		case slices.Contains(exempt, r.Namespace):
			r.Route = webhook.Route{
				Action: policies.Exempt, Mode: policies.Enforce,
				Reasons: []string{fmt.Sprintf("namespace %q is exempt: the API server does not ask the webhook", r.Namespace)},
			}
		default:
			r.Notes = notes(r, namespaces)
			if r.Route, err = router.Route(ctx, *in); err != nil {
				err = r.at(err)
			}
		}
		r.Err = err
		results = append(results, *r)
	}
	return results
}

// inputOf is the input of the decision on a document's pod. The result is nil for a
// document that makes no pods, and there beside an error.
func inputOf(document *catalog.Document, namespaces map[string]*catalog.Namespace, now time.Time) (*policies.Input, *result, error) {
	template, ok := webhook.Templates[document.GVK.Kind]
	if !ok || document.Object == nil {
		return nil, nil, nil
	}
	r := &result{Kind: document.GVK.Kind, document: document, template: template}
	object, ok := document.Object.(metav1.Object)
	if !ok {
		return nil, r, r.at(fmt.Errorf("a %T has no metadata", document.Object))
	}
	r.Namespace, r.Name = cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), cmp.Or(object.GetName(), object.GetGenerateName())
	raw, err := template.Pod(document.Raw, r.Name)
	if err != nil {
		return nil, r, r.at(err)
	}
	pod, err := policies.ReadPod(raw)
	if err != nil {
		return nil, r, r.at(err)
	}
	namespace, ok := namespaces[r.Namespace]
	if !ok {
		namespace = &catalog.Namespace{Name: r.Namespace}
	}
	return &policies.Input{
		Request:   policies.Request{Operation: "CREATE", Namespace: r.Namespace, Date: now.UTC().Format(time.DateOnly)},
		Namespace: *namespace,
		Pod:       pod,
	}, r, nil
}

// at says where an error is.
func (r *result) at(err error) error {
	return fmt.Errorf("%s: %s %s: %w", place(r.document), r.Kind, r.Name, err)
}

// place is where a document stands: in a file, or in a cluster, which counts none.
func place(document *catalog.Document) string {
	if document.Index == 0 {
		return document.File
	}
	return fmt.Sprintf("%s: document %d", document.File, document.Index)
}

// notes are what the decision rests on and its reader may not expect.
func notes(r *result, namespaces map[string]*catalog.Namespace) []string {
	var said []string
	for _, w := range r.document.Warnings {
		said = append(said, fmt.Sprintf("%s: document %d: %s %s: %s", r.document.File, r.document.Index, r.Kind, r.Name, w))
	}
	if namespaces[r.Namespace] == nil {
		said = append(said, fmt.Sprintf("%s %s: namespace %s is not among the manifests and counts as without labels", r.Kind, r.Name, r.Namespace))
	}
	return said
}
