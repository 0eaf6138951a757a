package survey

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Explanation is how the rules of the shipped policy come to their answer on a pod. What
// could not be found out, since a rule failed, is nil.
type Explanation struct {
	// Lacks is a rule of the shipped policy that this one does not have, since it replaces
	// it. How it decides is not known here, and only Fired says something.
	Lacks  string  `json:"lacks,omitempty"`
	Trust  *Trust  `json:"trust,omitempty"`
	Choice *Choice `json:"choice,omitempty"`
	// Fired are the author's own rules that held.
	Fired []Fired `json:"fired"`
}

// Trust is how far a pod is trusted, and why.
type Trust struct {
	Level    string   `json:"level"`
	Reason   string   `json:"reason"`
	Warnings []string `json:"warnings"`
}

// Choice is what a pod may run under.
type Choice struct {
	Profile      string `json:"profile"`
	ProfileLabel string `json:"profileLabel"` // empty where nobody labelled one
	// Sandboxed: the floor of the pod's level is above host-kernel.
	Sandboxed bool `json:"sandboxed"`
	// Asked is the class that the pod names. A sandboxed pod's is judged, if the catalog has it.
	Asked      string      `json:"asked"`
	AskedClass *Candidate  `json:"askedClass,omitempty"`
	Runtimes   []string    `json:"runtimes"` // in the order of preference
	Candidates []Candidate `json:"candidates"`
	Absent     []string    `json:"absent"` // runtimes that no class of the cluster has
}

// Candidate is one class that a policy may choose, as the shipped rules judge it.
type Candidate struct {
	Name      string `json:"name"`
	Family    string `json:"family"`
	Isolation string `json:"isolation"`
	Ready     bool   `json:"ready"`
	Usable    bool   `json:"usable"`
	Against   []Mark `json:"against"`
	Prefer    []Mark `json:"prefer"`
	Warn      []Mark `json:"warn"`
}

// Mark is what speaks against a candidate.
type Mark struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
}

// Fired is a rule that held, and where it stands.
type Fired struct {
	Rule string `json:"rule"`
	File string `json:"file"`
	Line int    `json:"line"`
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

// Explain asks the shipped rules one by one. The explanation is there beside an error, with
// what was found out before it.
func (s *Side) Explain(ctx context.Context, in *policies.Input) (*Explanation, error) {
	e := &Explanation{Fired: []Fired{}}
	snapshot, err := s.Router.Engine.Snapshot()
	if err != nil {
		return e, err
	}
	if lacking := slices.DeleteFunc(slices.Clone(shippedRules), snapshot.Defines); len(lacking) > 0 {
		e.Lacks = lacking[0]
	} else {
		a := &asker{ctx: ctx, snapshot: snapshot, in: in}
		if e.Trust = a.trust(); a.err == nil {
			e.Choice = a.choice()
		}
		if err = a.err; err != nil {
			e.Choice = nil
		}
	}
	// An error of the trace is that of the decision, which the caller asks for.
	hooks, _ := snapshot.Hooks(ctx, *in, func(module string) bool { _, own := s.Source.Modules[module]; return own })
	for _, h := range hooks {
		e.Fired = append(e.Fired, Fired{h.Rule, s.Source.File(h.File), h.Line})
	}
	return e, err
}

// asker asks until something fails.
type asker struct {
	ctx      context.Context
	snapshot *policies.Snapshot
	in       *policies.Input
	err      error
}

func (a *asker) trust() *Trust {
	t := &Trust{Warnings: []string{}}
	a.ask("data.router.trust.level.name", &t.Level)
	a.ask("data.router.trust.reason", &t.Reason)
	a.ask("data.router.trust.warnings", &t.Warnings)
	if a.err != nil {
		return nil
	}
	return t
}

func (a *asker) choice() *Choice {
	c := &Choice{Runtimes: []string{}, Candidates: []Candidate{}, Absent: []string{}}
	a.ask("data.router.selection.sandboxed", &c.Sandboxed)
	a.ask("data.router.selection.profile", &c.Profile)
	a.ask("data.router.selection.profile_label", &c.ProfileLabel)
	a.ask("data.router.selection.runtimes", &c.Runtimes)
	a.ask(absentRuntimes, &c.Absent)
	a.ask("data.router.placement.asked", &c.Asked)
	fields := openFields
	if c.Sandboxed {
		fields = sandboxedFields
	}
	a.ask(fmt.Sprintf(ofCandidates, fields), &c.Candidates)
	if c.Sandboxed {
		var asked []Candidate
		if a.ask(fmt.Sprintf(ofAskedClass, fields), &asked); len(asked) > 0 {
			c.AskedClass = &asked[0]
		}
	}
	return c
}

// ask decodes the value of a query, and leaves into as it is where it is undefined.
func (a *asker) ask(query string, into any) {
	if a.err != nil {
		return
	}
	value, err := a.snapshot.Ask(a.ctx, *a.in, query)
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
