package policies

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// asked is the variable of the planned query that has the decision.
const asked = "answer"

// Evaluate asks the policy, whatever was decided before: to measure it.
//
// It runs the policy's plan. Where that has no answer, because rules contradict each other
// or a builtin errs, OPA's own evaluator has the say, on the rules themselves: it does not
// look at what it need not, and names file and line.
func (s *Snapshot) Evaluate(ctx context.Context, in Input) (Decision, error) {
	value, err := in.value(s.catalog, s.policy.reads)
	if err != nil {
		return Decision{}, err
	}
	if s.policy.program != nil {
		decided, err := s.byPlan(ctx, value)
		if ctx.Err() != nil {
			return Decision{}, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
		}
		if err == nil && decided != nil {
			return decodeDecision(decided)
		}
	}
	decided, err := s.byRules(ctx, value)
	if ctx.Err() != nil {
		// Asked of the context, not of the result: some builtins run on past their
		// deadline and report no error.
		return Decision{}, &Fault{Kind: TimedOut, Err: context.Cause(ctx)}
	}
	if err != nil {
		return Decision{}, &Fault{Kind: Failed, Err: err}
	}
	if decided == nil {
		return Decision{}, &Fault{Kind: Undefined, Err: fmt.Errorf("%s is undefined for this pod", entrypoint)}
	}
	return decodeDecision(decided)
}

// byPlan returns what the plan says of an input; nil where it is undefined.
func (s *Snapshot) byPlan(ctx context.Context, input ast.Value) (any, error) {
	answers, err := s.policy.program.Run(ctx, plan.Options{
		Input: ast.NewTerm(input), Data: s.data, Facts: s.facts.planned, Strict: true,
	})
	if err != nil || answers.Len() == 0 {
		return nil, err
	}
	return ast.JSON(answers.Slice()[0].Value.(ast.Object).Get(ast.InternedTerm(asked)).Value)
}

// byRules returns what the rules say of an input; nil where they are undefined.
func (s *Snapshot) byRules(ctx context.Context, input ast.Value) (any, error) {
	results, err := s.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalVirtualCache(s.facts.cache()))
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0].Expressions[0].Value, nil
}

// Unplanned says why OPA's own evaluator decides alone, which takes about three times as
// long; nil where the plan does.
func (s *Snapshot) Unplanned() error { return s.policy.unplanned }

// Agree says what the plan and the rules differ in over an input; nil also where one of
// them has no answer in time.
func (s *Snapshot) Agree(ctx context.Context, in Input) error {
	if s.policy.program == nil {
		return nil
	}
	value, err := in.value(s.catalog, s.policy.reads)
	if err != nil {
		return err
	}
	planned, _ := s.byPlan(ctx, value)
	if planned == nil {
		return nil // the rules have the say anyway
	}
	decided, failed := s.byRules(ctx, value)
	inTime := ctx.Err() == nil
	switch {
	case inTime && failed != nil:
		return fmt.Errorf("the plan has the answer %v, and the rules fail: %w", planned, failed)
	case inTime && util.Compare(planned, decided) != 0:
		return fmt.Errorf("the plan has the answer %v, and the rules %v", planned, decided)
	}
	return nil
}
