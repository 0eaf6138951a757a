package doctor

import (
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity string

// The severities, mildest first. Unknown is what could not be looked at.
const (
	OK      Severity = "ok"
	Note    Severity = "note"
	Unknown Severity = "unknown"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Severities are in the order of their weight.
func Severities() []Severity { return []Severity{OK, Note, Unknown, Warning, Error} }

// AtLeast reports whether s weighs as much as other, or more.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }

func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Finding is one thing that a check has to say.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Object is kind/name, or kind/namespace/name, of what it is about; empty for a check as
	// a whole.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	// Next is the command to go on with; empty where nothing is left to do.
	Next string `json:"next,omitempty"`
}

// Worst is the weightiest severity among findings.
func Worst(findings []Finding) Severity {
	worst := OK
	for i := range findings {
		if findings[i].Severity.AtLeast(worst) {
			worst = findings[i].Severity
		}
	}
	return worst
}

// sorted puts what weighs most first, and keeps the order of the checks otherwise.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
	return findings
}

// few names as many as a line has room for.
func few(names []string) string {
	const room = 5
	if len(names) <= room {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:room], ", ") + ", ..."
}
