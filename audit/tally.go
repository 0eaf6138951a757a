package audit

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// maxNames is how many pods of an owner are named.
const maxNames = 5

// Counted is how many pods a finding is true of, and why of the first of them.
type Counted struct {
	Finding
	Pods   int      `json:"pods"`
	Names  []string `json:"names"` // the first few, by name
	Reason string   `json:"reason"`

	first int // the position of the pod that Reason is of
}

// Tally counts findings by owner, from any number of goroutines at once. Pods that are as
// they should be are counted and not kept.
type Tally struct {
	limit        int
	enforcedOnly bool

	mu       sync.Mutex
	report   Report
	findings map[Finding]*Counted
}

// NewTally returns one that keeps as many findings, or all of them for 0, and counts the
// pods of others. enforcedOnly passes over what is found where nothing is enforced.
func NewTally(limit int, enforcedOnly bool) *Tally {
	return &Tally{
		limit: limit, enforcedOnly: enforcedOnly, findings: map[Finding]*Counted{},
		report: Report{LeftOut: map[string]int{}, Found: map[Kind]int{}, byMode: map[measured]int{}, passed: map[string]int{}},
	}
}

// Report is what was found, as of -o json.
type Report struct {
	// Pods is how many were looked at.
	Pods int `json:"pods"`
	// LeftOut is how many were not, by why.
	LeftOut map[string]int `json:"leftOut"`
	// Found is how many pods have a finding, by its kind.
	Found map[Kind]int `json:"found"`
	// Unlisted is how many of those are of findings that are not listed.
	Unlisted int `json:"unlisted,omitempty"`
	// Findings have the gravest first, of one kind what is enforced.
	Findings []Counted `json:"findings"`

	byMode map[measured]int
	passed map[string]int // by namespace
}

// measured is what pods are counted by, for metrics.
type measured struct {
	kind Kind
	mode policies.Mode
}

// Add counts one pod, of an item at that position.
func (t *Tally) Add(position int, l *Looked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.LeftOut != "" {
		t.report.LeftOut[l.LeftOut]++
		return
	}
	t.report.Pods++
	if l.Finding == nil || t.enforcedOnly && !l.Finding.Enforced {
		t.report.passed[l.Namespace]++
		t.report.byMode[measured{None, l.Mode}]++
		return
	}
	t.report.Found[l.Finding.Kind]++
	t.report.byMode[measured{l.Finding.Kind, l.Mode}]++
	t.keep(position, l)
}

func (t *Tally) keep(position int, l *Looked) {
	seen := t.findings[*l.Finding]
	if seen == nil {
		if t.limit > 0 && len(t.findings) == t.limit {
			t.report.Unlisted++
			return
		}
		seen = &Counted{Finding: *l.Finding, Reason: l.Reason, first: position}
		t.findings[*l.Finding] = seen
	}
	seen.Pods++
	if position < seen.first {
		seen.first, seen.Reason = position, l.Reason
	}
	at, _ := slices.BinarySearch(seen.Names, l.Name)
	if seen.Names = slices.Insert(seen.Names, at, l.Name); len(seen.Names) > maxNames {
		seen.Names = seen.Names[:maxNames]
	}
}

// Report is what was counted.
func (t *Tally) Report() *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	report := t.report
	report.Findings = []Counted{}
	for _, c := range t.findings {
		report.Findings = append(report.Findings, *c)
	}
	slices.SortFunc(report.Findings, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), enforcedFirst(&a.Finding, &b.Finding),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Owner, b.Owner),
			strings.Compare(a.RuntimeClassName, b.RuntimeClassName), strings.Compare(a.Today, b.Today),
			strings.Compare(a.Trust, b.Trust))
	})
	return &report
}

func enforcedFirst(a, b *Finding) int {
	switch {
	case a.Enforced == b.Enforced:
		return 0
	case a.Enforced:
		return -1
	}
	return 1
}
