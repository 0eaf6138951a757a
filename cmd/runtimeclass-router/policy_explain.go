package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// candidate is one class that a policy may choose, as the shipped rules judge it.
type candidate struct {
	Name      string `json:"name"`
	Family    string `json:"family"`
	Isolation string `json:"isolation"`
	Ready     bool   `json:"ready"`
	Usable    bool   `json:"usable"`
	Against   []mark `json:"against"`
	Prefer    []mark `json:"prefer"`
	Warn      []mark `json:"warn"`
}

type mark struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
}

// candidateFields are a candidate by the shipped rules. Against an open level's
// candidates only the pod's placement counts.
const candidateFields = `{
	"name": class.name, "family": class.family, "isolation": class.isolation, "ready": class.poolReady,
	"usable": %s, "against": %s,
	"prefer": data.router.compatibility.marks(class, "prefer"),
	"warn": data.router.compatibility.marks(class, "warn"),
}`

// Queries for candidates, of which the first two are for a sandboxed and an open level.
var (
	sandboxedFields = fmt.Sprintf(candidateFields, "count(data.router.selection.obstacles(class)) == 0", "data.router.selection.obstacles(class)")
	openFields      = fmt.Sprintf(candidateFields, "class in data.router.selection.suitable", "data.router.placement.contradictions(class)")
)

const (
	ofCandidates   = "[%s | some class in data.router.selection.candidates]"
	ofAskedClass   = "[%s | class := data.router.placement.asked_class]"
	absentRuntimes = "[r | some r in data.router.selection.runtimes; not data.router.selection.provided(r)]"
)

// shippedRules are those that an explanation asks. A policy that replaces the shipped
// one need not have them.
var shippedRules = []string{
	"data.router.trust.level", "data.router.trust.reason",
	"data.router.selection.sandboxed", "data.router.selection.profile", "data.router.selection.runtimes",
	"data.router.selection.candidates", "data.router.selection.obstacles", "data.router.selection.suitable",
	"data.router.selection.provided", "data.router.compatibility.marks", "data.router.placement.contradictions", "data.router.placement.asked_class",
}

// explain prints how the shipped rules came to the answer; beside an error, what was
// found out before it.
func (q *question) explain(ctx context.Context, out io.Writer) error {
	t := &tree{}
	err := q.grow(ctx, t)
	if _, printErr := io.WriteString(out, t.String()); printErr != nil {
		return printErr
	}
	if err != nil {
		return q.located(blame(ctx, q.snapshot, q.source, q.input, err))
	}
	return nil
}

func (q *question) grow(ctx context.Context, t *tree) error {
	var shippedErr error
	if lacking := slices.DeleteFunc(slices.Clone(shippedRules), q.snapshot.Defines); len(lacking) > 0 {
		t.add(0, "rules   not those of the shipped policy (there is no %s): how this one decides is not known here", lacking[0])
	} else {
		shippedErr = q.shipped(ctx, t)
	}
	// An error of the trace is that of the decision below.
	hooks, _ := q.snapshot.Hooks(ctx, q.input, func(module string) bool { _, own := q.source.Modules[module]; return own })
	for _, h := range hooks {
		t.add(0, "fired   %s at %s:%d", h.Rule, q.source.File(h.File), h.Line)
	}
	route, err := q.router.Route(ctx, q.input)
	if err != nil {
		return err
	}
	if route.Denied() {
		t.add(0, "answer  denied")
	} else {
		t.add(0, "answer  %s: %s", route.Action, route.Outcome())
	}
	for _, reason := range route.Reasons {
		t.add(1, "%s", reason)
	}
	for _, warning := range route.Warnings {
		t.add(1, "warning: %s", warning)
	}
	return shippedErr
}

// shipped asks the shipped rules one by one.
func (q *question) shipped(ctx context.Context, t *tree) error {
	var (
		a                          = &asker{ctx: ctx, q: q}
		level, reason, profile     string
		asked, from                string
		sandboxed                  bool
		runtimes, absent, warnings []string
		candidates, askedClass     []candidate
	)
	a.ask("data.router.trust.level.name", &level)
	a.ask("data.router.trust.reason", &reason)
	a.ask("data.router.trust.warnings", &warnings)
	if a.err != nil {
		return a.err
	}
	t.add(0, "trust   %s", level)
	t.add(1, "%s", reason)
	for _, w := range warnings {
		t.add(1, "warning: %s", w)
	}
	a.ask("data.router.selection.sandboxed", &sandboxed)
	a.ask("data.router.selection.profile", &profile)
	a.ask("data.router.selection.profile_label", &from)
	a.ask("data.router.selection.runtimes", &runtimes)
	a.ask(absentRuntimes, &absent)
	a.ask("data.router.placement.asked", &asked)
	fields := openFields
	if sandboxed {
		fields = sandboxedFields
	}
	a.ask(fmt.Sprintf(ofCandidates, fields), &candidates)
	if sandboxed {
		a.ask(fmt.Sprintf(ofAskedClass, fields), &askedClass)
	}
	if a.err != nil {
		return a.err
	}
	t.add(0, "profile %s", profile)
	if from == "" {
		t.add(1, "neither the pod nor its namespace is labelled workload-profile")
	} else {
		t.add(1, "labelled workload-profile=%s", from)
	}
	if asked != "" {
		t.add(0, "asked   %s", asked)
		switch {
		case !sandboxed:
			t.add(1, "any class will do at this level")
		case len(askedClass) == 0:
			t.add(1, "not in the catalog")
		default:
			askedClass[0].explain(t)
		}
	}
	t.add(0, "runtimes in order: %s", strings.Join(runtimes, ", "))
	for i := range candidates {
		candidates[i].explain(t)
	}
	for _, runtime := range absent {
		t.add(1, "%s  no such runtime in this cluster", runtime)
	}
	return nil
}

func (c *candidate) explain(t *tree) {
	state := "usable"
	switch {
	case !c.Usable && len(c.Against) == 0:
		state = "ruled out: not every node that the pod may be bound to offers it"
	case !c.Usable:
		state = "ruled out"
	case !c.Ready:
		state = "usable, but no node is ready"
	}
	t.add(1, "%s  %s  (%s, %s)", c.Name, state, c.Family, c.Isolation)
	for _, m := range c.Against {
		t.add(2, "against  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
	if !c.Usable {
		return
	}
	for _, m := range c.Prefer {
		t.add(2, "prefer others  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
	for _, m := range c.Warn {
		t.add(2, "warn  %s: %s (%s)", m.Field, m.Reason, m.Hint)
	}
}

// asker asks until something fails.
type asker struct {
	ctx context.Context
	q   *question
	err error
}

// ask decodes the value of a query, and leaves into as it is where it is undefined.
func (a *asker) ask(query string, into any) {
	if a.err != nil {
		return
	}
	value, err := a.q.snapshot.Ask(a.ctx, a.q.input, query)
	if err != nil {
		a.err = err
		return
	}
	if value == nil {
		return
	}
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		a.err = fmt.Errorf("%s: %w", query, err)
	}
}

// tree is text in steps of two spaces.
type tree struct{ strings.Builder }

func (t *tree) add(depth int, format string, args ...any) {
	indent := strings.Repeat("  ", depth)
	if depth > 0 {
		indent = strings.Repeat(" ", 8) + strings.Repeat("  ", depth-1)
	}
	fmt.Fprintf(t, indent+format+"\n", args...)
}
