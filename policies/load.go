package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// try does all of [Engine.Load] but putting the policy in force.
func (e *Engine) try(ctx context.Context, modules Modules, config Config) (*policy, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.limits.Load, fmt.Errorf("the policy is not checked in %s: %w", e.limits.Load, context.DeadlineExceeded))
	defer cancel()
	p, err := watched(ctx, &e.counts.watchdog, func(ctx context.Context) (*policy, error) {
		p, err := e.newPolicy(ctx, modules, config)
		if err != nil {
			return nil, err
		}
		return p, e.checked(ctx, p)
	})
	if errors.Is(err, ErrAbandoned) {
		return nil, context.Cause(ctx)
	}
	return p, err
}

// newPolicy does the load order of [Engine.Load], up to the self-test.
func (e *Engine) newPolicy(ctx context.Context, modules Modules, config Config) (*policy, error) {
	if err := config.Validate(field.NewPath("router")).ToAggregate(); err != nil {
		return nil, err
	}
	parsed, err := parse(modules)
	if err != nil {
		return nil, err
	}
	production := maps.Clone(parsed)
	maps.DeleteFunc(production, func(name string, _ *ast.Module) bool { return isTest(name) })
	compiler, err := compile(production)
	if err != nil {
		return nil, err
	}
	var tests error
	if len(production) < len(parsed) {
		tests = e.runTests(ctx, parsed, config)
	}
	revision, err := revisionOf(modules, config)
	if err != nil {
		return nil, err
	}
	read, err := inputReads(compiler, modules, config)
	if err != nil {
		return nil, err
	}
	constant, err := constant(compiler)
	if err != nil {
		return nil, err
	}
	p := &policy{compiler: compiler, reads: read, constant: constant, config: config, revision: revision}
	p.program, p.unplanned = plan.New(ctx, compiler, ast.MustParseBody(asked+" = "+entrypoint))
	return p, errors.Join(tests, e.selfTest(ctx, p))
}

// checked asks for answers in time, and the engine's check, over the catalog of the
// moment.
func (e *Engine) checked(ctx context.Context, p *policy) error {
	e.mu.Lock()
	c, given := e.catalog, e.given
	e.mu.Unlock()
	if !given {
		return nil
	}
	// What else is wrong with an answer, the check says.
	if err := e.askAll(ctx, p, c, func(error) error { return nil }); err != nil || e.check == nil {
		return err
	}
	s, err := newSnapshot(ctx, p, c, &e.counts)
	if err != nil {
		return err
	}
	return e.check(ctx, s)
}

// revisionOf is a digest of all that makes a policy.
func revisionOf(modules Modules, config Config) (string, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if !isTest(name) {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(modules[name]), modules[name])
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	sum.Write(raw)
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

func testResults(ctx context.Context, parsed map[string]*ast.Module, config Config, with ...func(*tester.Runner) *tester.Runner) ([]*tester.Result, error) {
	var results []*tester.Result
	err := eachResult(ctx, parsed, config, func(r *tester.Result) { results = append(results, r) }, with...)
	return results, err
}

// eachResult runs the test rules of the modules over an empty catalog; a test brings its
// own with `with data.catalog as ...`.
func eachResult(ctx context.Context, parsed map[string]*ast.Module, config Config, each func(*tester.Result), with ...func(*tester.Runner) *tester.Runner) error {
	set, err := schemaSet()
	if err != nil {
		return err
	}
	store, err := newStore(catalog.Build(nil, nil), config)
	if err != nil {
		return err
	}
	runner := tester.NewRunner().SetCompiler(newCompiler(set)).SetStore(store).RaiseBuiltinErrors(true)
	for _, option := range with {
		runner = option(runner)
	}
	stream, err := runner.SetModules(parsed).RunTests(ctx, nil)
	if err != nil {
		return fmt.Errorf("compile policy tests: %w", err)
	}
	for result := range stream {
		each(result)
	}
	return nil
}
