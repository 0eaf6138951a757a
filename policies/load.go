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
)

// newPolicy does the load order of [Engine.Load].
func newPolicy(ctx context.Context, modules Modules, config Config) (*policy, error) {
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
		tests = runTests(ctx, parsed, config)
	}
	revision, err := revisionOf(modules, config)
	if err != nil {
		return nil, err
	}
	p := &policy{compiler: compiler, config: config, revision: revision}
	return p, errors.Join(tests, selfTest(ctx, p))
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

// runTests runs the test rules of the modules over an empty catalog; a test brings
// its own with `with data.catalog as ...`. The error joins the tests that failed.
func runTests(ctx context.Context, parsed map[string]*ast.Module, config Config) error {
	results, err := testResults(ctx, parsed, config)
	if err != nil {
		return err
	}
	var errs []error
	for _, result := range results {
		if !result.Pass() && !result.Skip {
			errs = append(errs, locate(result.Location, "", fmt.Errorf("%s.%s failed%s", result.Package, result.Name, detail(result.Error))))
		}
	}
	return errors.Join(errs...)
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func testResults(ctx context.Context, parsed map[string]*ast.Module, config Config, with ...func(*tester.Runner) *tester.Runner) ([]*tester.Result, error) {
	set, err := schemaSet()
	if err != nil {
		return nil, err
	}
	store, err := newStore(catalog.Build(nil, nil), config)
	if err != nil {
		return nil, err
	}
	runner := tester.NewRunner().SetCompiler(newCompiler(set)).SetStore(store).RaiseBuiltinErrors(true)
	for _, option := range with {
		runner = option(runner)
	}
	stream, err := runner.SetModules(parsed).RunTests(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("compile policy tests: %w", err)
	}
	var results []*tester.Result
	for result := range stream {
		results = append(results, result)
	}
	return results, nil
}
