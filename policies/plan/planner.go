package plan

import (
	"context"
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/rego"
)

// target is the name under which OPA plans for this package. Its planner is only to be
// had through this extension point, which is handed the plan of a query that it prepares.
const target = "router-plan"

func init() { rego.RegisterPlugin(target, planner{}) }

type planner struct{}

// handed is the key of where a plan is wanted.
type handed struct{}

func (planner) IsTarget(name string) bool { return name == target }

func (planner) PrepareForEval(ctx context.Context, policy *ir.Policy, _ ...rego.PrepareOption) (rego.TargetPluginEval, error) {
	wanted, ok := ctx.Value(handed{}).(**ir.Policy)
	if !ok {
		return nil, errors.New("target " + target + " is for package plan alone")
	}
	*wanted = policy
	return nil, nil
}

// New makes a program of a query over the rules of a compiler, which has compiled them
// without an error. The error says what of Rego cannot be planned.
func New(ctx context.Context, compiler *ast.Compiler, query ast.Body) (*Program, error) {
	var policy *ir.Policy
	_, err := rego.New(
		rego.Compiler(compiler),
		rego.ParsedQuery(query),
		rego.Target(target),
	).PrepareForEval(context.WithValue(ctx, handed{}, &policy))
	if err != nil {
		return nil, err
	}
	return assemble(policy)
}
