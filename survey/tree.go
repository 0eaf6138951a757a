package survey

import (
	"fmt"
	"strings"
)

// Tree is text in steps of two spaces, below names of seven letters.
type Tree struct{ strings.Builder }

// Add writes a line at a depth, from 0.
func (t *Tree) Add(depth int, format string, args ...any) {
	indent := strings.Repeat("  ", depth)
	if depth > 0 {
		indent = strings.Repeat(" ", 8) + strings.Repeat("  ", depth-1)
	}
	fmt.Fprintf(t, indent+format+"\n", args...)
}

// Grow writes the steps of an explanation.
func (e *Explanation) Grow(t *Tree) {
	if e.Lacks != "" {
		t.Add(0, "rules   not those of the shipped policy (there is no %s): how this one decides is not known here", e.Lacks)
	}
	if e.Trust != nil {
		t.Add(0, "trust   %s", e.Trust.Level)
		t.Add(1, "%s", e.Trust.Reason)
		for _, w := range e.Trust.Warnings {
			t.Add(1, "warning: %s", w)
		}
	}
	if e.Choice != nil {
		e.Choice.grow(t)
	}
	for _, f := range e.Fired {
		t.Add(0, "fired   %s at %s:%d", f.Rule, f.File, f.Line)
	}
}

func (c *Choice) grow(t *Tree) {
	t.Add(0, "profile %s", c.Profile)
	if c.ProfileLabel == "" {
		t.Add(1, "neither the pod nor its namespace is labelled workload-profile")
	} else {
		t.Add(1, "labelled workload-profile=%s", c.ProfileLabel)
	}
	if c.Asked != "" {
		t.Add(0, "asked   %s", c.Asked)
		switch {
		case !c.Sandboxed:
			t.Add(1, "any class will do at this level")
		case c.AskedClass == nil:
			t.Add(1, "not in the catalog")
		default:
			c.AskedClass.grow(t)
		}
	}
	t.Add(0, "runtimes in order: %s", strings.Join(c.Runtimes, ", "))
	for i := range c.Candidates {
		c.Candidates[i].grow(t)
	}
	for _, runtime := range c.Absent {
		t.Add(1, "%s  no such runtime in this cluster", runtime)
	}
}

func (c *Candidate) grow(t *Tree) {
	state := "usable"
	switch {
	case !c.Usable && len(c.Against) == 0:
		state = "ruled out: not every node that the pod may be bound to offers it"
	case !c.Usable:
		state = "ruled out"
	case !c.Ready:
		state = "usable, but no node is ready"
	}
	t.Add(1, "%s  %s  (%s, %s)", c.Name, state, c.Family, c.Isolation)
	for _, m := range c.Against {
		t.Add(2, "against  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
	if !c.Usable {
		return
	}
	for _, m := range c.Prefer {
		t.Add(2, "prefer others  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
	for _, m := range c.Warn {
		t.Add(2, "warn  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
}
