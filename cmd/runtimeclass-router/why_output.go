package main

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// text is the report for people: what is, what was and what would be, then how it comes
// about, then what that rests on.
func (r *whyReport) text() string {
	t := &survey.Tree{}
	r.addPod(t)
	r.addToday(t)
	r.addDifferences(t)
	if r.Steps != nil {
		t.Add(0, "")
		t.Add(0, "labels  namespace %s: %s", r.Namespace, cmp.Or(pairs(r.Labels.Namespace), "none of ours"))
		t.Add(1, "pod: %s", cmp.Or(pairs(r.Labels.Pod), "none of ours"))
		r.Steps.Grow(t)
		t.Add(0, "")
	}
	if r.Policy != nil {
		t.Add(0, "policy  %s, revision %s", r.Policy.From, r.Policy.Revision)
	}
	for i, read := range r.Read {
		t.Add(first(i), "%s%s", label(i, "read"), read)
	}
	for i, assumed := range r.Assumed {
		t.Add(first(i), "%s%s", label(i, "assumed"), assumed)
	}
	return t.String()
}

func (r *whyReport) addPod(t *survey.Tree) {
	kind := strings.ToLower(r.Kind)
	of := ""
	if r.Owner != "" {
		of = " of " + r.Owner
	}
	if r.Kind == "Pod" {
		t.Add(0, "pod     %s%s in namespace %s", r.Name, of, r.Namespace)
	} else {
		t.Add(0, "pod     the next one of %s %s in namespace %s", kind, r.Name, r.Namespace)
	}
	if r.Runs != nil {
		where := "on no node yet"
		if r.Runs.NodeName != "" {
			where = "on node " + r.Runs.NodeName
		}
		t.Add(0, "runs    under %s, %s (%s)", className(r.Runs.RuntimeClassName), where, r.Runs.Phase)
	}
	if r.Recorded == nil {
		return
	}
	if *r.Recorded == (recorded{}) {
		t.Add(0, "record  nothing is recorded on it: the webhook changed nothing, or was not asked")
		return
	}
	t.Add(0, "record  trust %s, policy revision %s", cmp.Or(printable(r.Recorded.Trust), "not recorded"), cmp.Or(printable(r.Recorded.PolicyRevision), "not recorded"))
	if r.Recorded.Reason != "" {
		t.Add(1, "%s", printable(r.Recorded.Reason))
	}
	if r.Recorded.Fallback != "" {
		t.Add(1, "class %s is of the fallback: the webhook was not there", printable(r.Recorded.Fallback))
	}
	t.Add(1, "recorded in annotations, which whoever may write the pod may have written")
}

func (r *whyReport) addToday(t *survey.Tree) {
	outcome := r.Today.Outcome
	if r.Today.Isolation != "" && r.Today.Mode == policies.Enforce {
		outcome += fmt.Sprintf(", isolation %s", r.Today.Isolation)
	}
	t.Add(0, "today   %s", outcome)
	for _, reason := range r.Today.Reasons {
		t.Add(1, "%s", reason)
	}
	if e := r.Today.Exception; e != nil {
		t.Add(1, "exception %s: of %s, ticket %s", e.Name, e.Owner, e.Ticket)
	}
	for _, warning := range r.Today.Warnings {
		t.Add(1, "warning: %s", warning)
	}
}

func (r *whyReport) addDifferences(t *survey.Tree) {
	if r.Runs == nil || r.Today.Mode == "" {
		return
	}
	if len(r.Differences) == 0 {
		t.Add(0, "differs in nothing")
		return
	}
	for i, difference := range r.Differences {
		t.Add(first(i), "%s%s", label(i, "differs"), printable(difference))
	}
	if r.moves && r.Owner != "" {
		t.Add(1, "a pod keeps its runtime; to have %s create the next one: kubectl delete pod %s -n %s", r.Owner, r.Name, r.Namespace)
	}
}

// printable keeps what a tenant wrote from steering the terminal of whoever reads it.
func printable(written string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, written)
}

// first is the depth of a list's line, of which the first has the name.
func first(i int) int { return min(i, 1) }

func label(i int, name string) string {
	if i > 0 {
		return ""
	}
	return fmt.Sprintf("%-8s", name)
}
