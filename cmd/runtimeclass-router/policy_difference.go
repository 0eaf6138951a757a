package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// change is how the route of an owner's pods differs; only these are kept.
type change struct {
	Namespace   string `json:"namespace"`
	Owner       string `json:"owner"` // kind/name
	From        string `json:"from"`
	To          string `json:"to"`
	NewlyDenied bool   `json:"newlyDenied"`
}

// counted says how many pods change so, and why the first of them does.
type counted struct {
	Pods   int    `json:"pods"` // and workloads, each of which counts as one
	Reason string `json:"reason"`

	first int // of the items, that Reason is of
}

// side is one of the two policies.
type side struct {
	source *policies.Source
	router *webhook.Router
}

// difference compares pods, in any number of goroutines at once.
type difference struct {
	before, after          *side // the same where the policy stays as it is
	cluster                *catalog.Catalog
	namespaces, relabelled map[string]*catalog.Namespace
	exempt                 []string
	now                    time.Time

	mu       sync.Mutex
	compared int
	replaced int             // pods whose creator asked for a class that is not known any more
	met      map[string]bool // namespaces with a pod
	changes  map[change]*counted
}

// route compares one document, of an item at that position.
func (d *difference) route(ctx context.Context, position int, document *catalog.Document) error {
	if document.GVK.Kind != "Pod" {
		return d.compare(ctx, position, document, false)
	}
	next, err := recreate(document.Raw, d.cluster)
	if err != nil {
		return fmt.Errorf("%s: %w", place(document), err)
	}
	document.Raw = next.raw
	return d.compare(ctx, position, document, next.replaced)
}

func (d *difference) compare(ctx context.Context, position int, document *catalog.Document, replaced bool) error {
	old, r, err := inputOf(document, d.namespaces, d.now)
	if err != nil {
		return err
	}
	if old == nil || d.skips(r) {
		return nil
	}
	renewed := *old
	if namespace, ok := d.relabelled[r.Namespace]; ok {
		renewed.Namespace = *namespace
	} else if d.before == d.after {
		d.count(position, r, replaced, nil, nil)
		return nil
	}
	was, err := d.before.verdict(ctx, old)
	if err != nil {
		return r.at(err)
	}
	is, err := d.after.verdict(ctx, &renewed)
	if err != nil {
		return r.at(err)
	}
	d.count(position, r, replaced, was, is)
	return nil
}

// skips reports whether the webhook is not asked about the pod: its namespace is exempt,
// or it is the mirror of a static pod.
func (d *difference) skips(r *result) bool {
	object, ok := r.document.Object.(metav1.Object)
	return slices.Contains(d.exempt, r.Namespace) || ok && mirrors(object)
}

// mirrors reports whether a pod is a kubelet's announcement of a static pod.
func mirrors(object metav1.Object) bool {
	_, mirror := object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	return mirror && slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
}

// count takes down how a pod's verdict differs; both are nil where nothing can.
func (d *difference) count(position int, r *result, replaced bool, was, is *verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compared++
	d.met[r.Namespace] = true
	if replaced {
		d.replaced++
	}
	if was == nil || was.said == is.said {
		return
	}
	c := change{Namespace: r.Namespace, Owner: ownerOf(r), From: was.said, To: is.said, NewlyDenied: is.denied && !was.denied}
	seen := d.changes[c]
	if seen == nil {
		seen = &counted{first: position, Reason: is.news(was)}
		d.changes[c] = seen
	}
	if position < seen.first {
		seen.first, seen.Reason = position, is.news(was)
	}
	seen.Pods++
}

// verdict is what happens to a pod.
type verdict struct {
	said    string // in the words of the table
	denied  bool
	reasons []string
}

// news is the first reason that the old verdict did not give.
func (v *verdict) news(old *verdict) string {
	for _, reason := range v.reasons {
		if !slices.Contains(old.reasons, reason) {
			return reason
		}
	}
	return strings.Join(v.reasons, "; ")
}

// verdict routes a pod. A policy error is one: where the namespace is enforced it refuses
// the pod. The error is a pod that cannot be read.
func (s *side) verdict(ctx context.Context, in *policies.Input) (*verdict, error) {
	route, err := s.router.Route(ctx, *in)
	var fault *policies.Fault
	if errors.As(err, &fault) {
		v := &verdict{said: "POLICY ERROR", denied: route.Mode == policies.Enforce}
		if !v.denied {
			v.said = fmt.Sprintf("unchanged (%s), else POLICY ERROR", route.Mode)
		}
		snapshot, snapshotErr := s.router.Engine.Snapshot()
		if snapshotErr != nil {
			return nil, snapshotErr
		}
		for _, p := range s.source.Problems(blame(ctx, snapshot, s.source, *in, err)) {
			v.reasons = append(v.reasons, p.String())
		}
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	r := result{Route: route}
	return &verdict{said: outcome(&r), denied: r.denied(), reasons: route.Reasons}, nil
}

// ownerOf groups pods of one controller, and those of a Deployment by the Deployment,
// whose ReplicaSets come and go.
func ownerOf(r *result) string {
	object, ok := r.document.Object.(metav1.Object)
	if !ok {
		return r.Kind + "/" + r.Name
	}
	for _, owner := range object.GetOwnerReferences() {
		if owner.Controller == nil || !*owner.Controller {
			continue
		}
		hash := object.GetLabels()["pod-template-hash"]
		if name, cut := strings.CutSuffix(owner.Name, "-"+hash); owner.Kind == "ReplicaSet" && hash != "" && cut {
			return "Deployment/" + name
		}
		return owner.Kind + "/" + owner.Name
	}
	return r.Kind + "/" + r.Name
}

// diffReport is the output of -o json.
type diffReport struct {
	Compared    int           `json:"compared"`
	Changed     int           `json:"changed"`
	NewlyDenied int           `json:"newlyDenied"`
	Changes     []countedDiff `json:"changes"`
}

type countedDiff struct {
	change
	counted
}

func (d *difference) report() *diffReport {
	report := &diffReport{Compared: d.compared, Changes: []countedDiff{}}
	for c, n := range d.changes {
		report.Changes = append(report.Changes, countedDiff{c, *n})
		report.Changed += n.Pods
		if c.NewlyDenied {
			report.NewlyDenied += n.Pods
		}
	}
	slices.SortFunc(report.Changes, func(a, b countedDiff) int {
		if a.NewlyDenied != b.NewlyDenied { // what breaks comes first
			if a.NewlyDenied {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Owner, b.Owner),
			strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return report
}
