package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
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

// difference compares pods, in any number of goroutines at once.
type difference struct {
	before, after          *survey.Side // the same where the policy stays as it is
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
	next, err := survey.Recreate(document.Raw, d.cluster)
	if err != nil {
		return fmt.Errorf("%s: %w", survey.Place(document), err)
	}
	document.Raw = next.Raw
	return d.compare(ctx, position, document, next.Replaced)
}

func (d *difference) compare(ctx context.Context, position int, document *catalog.Document, replaced bool) error {
	old, subject, err := survey.Read(document, d.namespaces, d.now)
	if err != nil {
		return err
	}
	if old == nil || d.skips(subject) {
		return nil
	}
	renewed := *old
	if namespace, ok := d.relabelled[subject.Namespace]; ok {
		renewed.Namespace = *namespace
	} else if d.before == d.after {
		d.count(position, subject, replaced, nil, nil)
		return nil
	}
	was, err := d.before.Verdict(ctx, old)
	if err != nil {
		return subject.At(err)
	}
	is, err := d.after.Verdict(ctx, &renewed)
	if err != nil {
		return subject.At(err)
	}
	d.count(position, subject, replaced, was, is)
	return nil
}

// skips reports whether the webhook is not asked about the pod: its namespace is exempt,
// or it is the mirror of a static pod.
func (d *difference) skips(s *survey.Subject) bool {
	return slices.Contains(d.exempt, s.Namespace) || s.Mirrors()
}

// count takes down how a pod's verdict differs; both are nil where nothing can.
func (d *difference) count(position int, s *survey.Subject, replaced bool, was, is *survey.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.compared++
	d.met[s.Namespace] = true
	if replaced {
		d.replaced++
	}
	if was == nil || was.Said == is.Said {
		return
	}
	c := change{Namespace: s.Namespace, Owner: s.Owner(), From: was.Said, To: is.Said, NewlyDenied: is.Denied && !was.Denied}
	seen := d.changes[c]
	if seen == nil {
		seen = &counted{first: position, Reason: is.News(was)}
		d.changes[c] = seen
	}
	if position < seen.first {
		seen.first, seen.Reason = position, is.News(was)
	}
	seen.Pods++
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
