package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// result is the route of one pod or workload; its JSON is the output of -o json.
type result struct {
	survey.Subject
	webhook.Route

	// Err is set where nothing could be decided; Route is then empty.
	Err   error    `json:"-"`
	Notes []string `json:"-"`
}

func (r result) denied() bool { return r.Denied() }

// routeManifests routes every pod and workload, in the order of the manifests. Pods in
// exempt namespaces are never sent to the webhook.
func routeManifests(ctx context.Context, router *webhook.Router, manifests *catalog.Manifests, namespaces map[string]*catalog.Namespace, exempt []string, now time.Time) []result {
	results := []result{}
	for i := range manifests.Documents {
		in, subject, err := survey.Read(&manifests.Documents[i], namespaces, now)
		if subject == nil {
			continue
		}
		r := result{Subject: *subject}
		switch {
		case err != nil:
		case slices.Contains(exempt, r.Namespace):
			r.Route = webhook.Route{
				Action: policies.Exempt, Mode: policies.Enforce,
				Reasons: []string{fmt.Sprintf("namespace %q is exempt: the API server does not ask the webhook", r.Namespace)},
			}
		default:
			r.Notes = notes(subject, namespaces)
			if r.Route, err = router.Route(ctx, *in); err != nil {
				err = r.At(err)
			}
		}
		r.Err = err
		results = append(results, r)
	}
	return results
}

// notes are what the decision rests on and its reader may not expect.
func notes(s *survey.Subject, namespaces map[string]*catalog.Namespace) []string {
	var said []string
	for _, w := range s.Document.Warnings {
		said = append(said, fmt.Sprintf("%s: document %d: %s %s: %s", s.Document.File, s.Document.Index, s.Kind, s.Name, w))
	}
	if namespaces[s.Namespace] == nil {
		said = append(said, fmt.Sprintf("%s %s: namespace %s is not among the manifests and counts as without labels", s.Kind, s.Name, s.Namespace))
	}
	return said
}
