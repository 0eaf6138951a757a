package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// difference compares pods, in any number of goroutines at once.
type difference struct {
	before, after          *survey.Side // the same where the policy stays as it is
	cluster                *catalog.Catalog
	namespaces, relabelled map[string]*catalog.Namespace
	exempt                 []string
	now                    time.Time

	changes survey.Changes

	mu       sync.Mutex
	compared int
	replaced int             // pods whose creator asked for a class that is not known any more
	met      map[string]bool // namespaces with a pod
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
	if was != nil {
		d.changes.Add(position, s.Namespace, s.Owner(), was, is)
	}
}

// diffReport is the output of -o json.
type diffReport struct {
	Compared    int              `json:"compared"`
	Changed     int              `json:"changed"`
	NewlyDenied int              `json:"newlyDenied"`
	Changes     []survey.Counted `json:"changes"`
}

func (d *difference) report() *diffReport {
	report := &diffReport{Compared: d.compared, Changes: d.changes.List()}
	for _, c := range report.Changes {
		report.Changed += c.Pods
		if c.NewlyDenied {
			report.NewlyDenied += c.Pods
		}
	}
	return report
}
