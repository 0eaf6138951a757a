package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Defines reports whether the policy has a rule or a package at a ref, such as
// "data.router.selection.choice".
func (s *Snapshot) Defines(ref string) bool {
	parsed, err := ast.ParseRef(ref)
	return err == nil && len(s.policy.compiler.GetRules(parsed)) > 0
}

// Ask evaluates a query of an author's own over the input that a decision would be made
// on; the value is nil where the query is undefined. It is for explanations, and takes
// longer than a decision.
func (s *Snapshot) Ask(ctx context.Context, in Input, query string) (any, error) {
	value, err := in.value(s.catalog, everything)
	if err != nil {
		return nil, err
	}
	body, err := ast.ParseBodyWithOpts(query, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", query, err)
	}
	store, err := newStore(s.catalog, s.policy.config)
	if err != nil {
		return nil, err
	}
	results, err := rego.New(
		rego.Compiler(s.policy.compiler),
		rego.Store(store),
		rego.ParsedQuery(body),
		rego.ParsedInput(value),
		rego.StrictBuiltinErrors(true),
	).Eval(ctx)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0].Expressions[0].Value, nil
}

// Trace decides as [Snapshot.Decide] does, with a tracer that watches.
func (s *Snapshot) Trace(ctx context.Context, in Input, tracer topdown.QueryTracer) error {
	value, err := in.value(s.catalog, everything)
	if err != nil {
		return err
	}
	_, err = s.query.Eval(ctx, rego.EvalParsedInput(value), rego.EvalQueryTracer(tracer))
	return err
}

// Fired is a rule that held for a pod.
type Fired struct {
	Rule         string // as data.router.custom.denials
	File         string
	Line, Column int
}

// Hooks returns the rules of package router.custom, and those of the entry point, that
// held for a pod, sorted by place; beside an error those that held before it. own picks
// modules by name.
func (s *Snapshot) Hooks(ctx context.Context, in Input, own func(module string) bool) ([]Fired, error) {
	watch := &watcher{fired: map[Fired]bool{}}
	err := s.Trace(ctx, in, watch)
	var found []Fired
	for f := range watch.fired {
		if own(f.File) && (f.Rule == entrypoint || strings.HasPrefix(f.Rule, "data.router.custom.")) {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Fired) int {
		return strings.Compare(fmt.Sprintf("%s %8d", a.File, a.Line), fmt.Sprintf("%s %8d", b.File, b.Line))
	})
	return found, err
}

// watcher notes which rules are left with a value.
type watcher struct{ fired map[Fired]bool }

// Enabled implements topdown.QueryTracer.
func (*watcher) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*watcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *watcher) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if !ok || event.Op != topdown.ExitOp || rule.Location == nil {
		return
	}
	w.fired[Fired{
		Rule: rule.Ref().GroundPrefix().String(),
		File: rule.Location.File, Line: rule.Location.Row, Column: rule.Location.Col,
	}] = true
}
