package plan_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/test/cases"
	"github.com/open-policy-agent/opa/v1/test/cases/testdata"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/runtimeclass-router/runtimeclass-router/policies/plan"
)

// apart are the cases of OPA's that a plan answers otherwise, with the reason.
var apart = map[string]string{
	"data/toplevel integer": integerKeys,
	"data/nested integer":   integerKeys,
}

const integerKeys = "topdown reads data from a store, whose paths are text, so data.a[2] finds the key \"2\" too"

// sleeps is the one case that is left out: it calls test.sleep, a builtin that only OPA's own
// tests have.
const sleeps = "time/time caching"

// TestCases holds programs to OPA's own cases of what Rego means, by which it tests its
// evaluators.
func TestCases(t *testing.T) {
	ran, differ, slept := 0, 0, 0
	err := fs.WalkDir(testdata.V1, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(testdata.V1, path)
		if err != nil {
			return err
		}
		var set cases.Set
		if err := util.Unmarshal(raw, &set); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, c := range set.Cases {
			if c.Note == sleeps {
				slept++
				continue
			}
			ran++
			t.Run(c.Note, func(t *testing.T) {
				for key, value := range c.Env {
					t.Setenv(key, value)
				}
				wrong := answered(t, &c)
				if reason, ok := apart[c.Note]; ok {
					differ++
					if wrong == nil {
						t.Errorf("is answered as OPA does: it need not be listed (%s)", reason)
					}
				} else if wrong != nil {
					t.Error(wrong)
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ran < 2000 || differ != len(apart) || slept != 1 {
		t.Errorf("%d cases, of which %d of %d are listed as apart, and %d left out: OPA has more than 2,000, one of which sleeps", ran, differ, len(apart), slept)
	}
}

// answered says how the answer to a case is wrong.
func answered(t *testing.T, c *cases.TestCase) error {
	t.Helper()
	options := ast.ParserOptions{RegoVersion: ast.RegoV1}
	if c.ExperimentalKeywords {
		options.Capabilities = ast.CapabilitiesForThisVersion(ast.CapabilitiesExperimentalKeywords(true))
	}
	modules := map[string]string{}
	for i, module := range c.Modules {
		modules[fmt.Sprintf("test-%d.rego", i)] = module
	}
	compiler, err := ast.CompileModulesWithOpt(modules, ast.CompileOpts{ParserOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	program, err := plan.New(t.Context(), compiler, ast.MustParseBody(c.Query))
	if err != nil {
		return err
	}
	o := plan.Options{Strict: c.StrictError, Data: ast.ObjectTerm(), Builtins: topdown.BuiltinContext{
		Time: ast.NumberTerm(json.Number(strconv.FormatInt(time.Now().UnixNano(), 10))), Seed: rand.Reader, Metrics: metrics.New(),
	}}
	if c.Data != nil {
		o.Data = ast.NewTerm(ast.MustInterfaceToValue(*c.Data))
	}
	switch {
	case c.InputTerm != nil:
		o.Input = ast.MustParseTerm(*c.InputTerm)
	case c.Input != nil:
		o.Input = ast.NewTerm(ast.MustInterfaceToValue(*c.Input))
	}
	got, err := program.Run(t.Context(), o)
	switch {
	case c.WantError != nil || c.WantErrorCode != nil:
		if err == nil {
			return fmt.Errorf("got %v, want an error", got)
		}
		return nil
	case err != nil:
		return err
	case c.WantResult == nil:
		return fmt.Errorf("the case wants nothing")
	}
	want := ast.NewSet()
	for _, bindings := range *c.WantResult {
		want.Add(ast.NewTerm(ast.MustInterfaceToValue(bindings)))
	}
	if plain := inJSON(t, got, c.SortBindings); plain.Compare(want) != 0 {
		return fmt.Errorf("got  %v\nwant %v", plain, want)
	}
	return nil
}

// inJSON is a result without sets and without the variables that the compiler makes.
func inJSON(t *testing.T, results ast.Set, sorted bool) ast.Set {
	t.Helper()
	plain := ast.NewSet()
	results.Foreach(func(bindings *ast.Term) {
		named := ast.NewObject()
		bindings.Value.(ast.Object).Foreach(func(name, term *ast.Term) {
			if strings.HasPrefix(string(name.Value.(ast.String)), "__localq") {
				return
			}
			value, err := ast.JSON(term.Value)
			if err != nil {
				t.Fatal(err)
			}
			if sorted {
				slices.SortFunc(value.([]any), util.Compare)
			}
			named.Insert(name, ast.NewTerm(ast.MustInterfaceToValue(value)))
		})
		plain.Add(ast.NewTerm(named))
	})
	return plain
}
