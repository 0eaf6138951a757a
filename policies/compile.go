package policies

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/dependencies"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/runtimeclass-router/runtimeclass-router/policies/schemas"
)

// entrypoint is the query of every decision.
const entrypoint = "data.router.decision"

// parse reads modules; all syntax errors are returned, each with file and line.
func parse(modules Modules) (map[string]*ast.Module, error) {
	if err := checkSize(modules); err != nil {
		return nil, err
	}
	parsed := make(map[string]*ast.Module, len(modules))
	var errs []error
	for name, source := range modules {
		module, err := ast.ParseModuleWithOpts(name, source, ast.ParserOptions{
			ProcessAnnotation: true, // without it the schemas below are not applied
			RegoVersion:       ast.RegoV1,
			Capabilities:      capabilities(),
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		parsed[name] = module
	}
	return parsed, errors.Join(errs...)
}

// compile checks parsed modules strictly, with schemas, and that they define the
// entry point and read no data but the product's own.
func compile(parsed map[string]*ast.Module) (*ast.Compiler, error) {
	set, err := schemaSet()
	if err != nil {
		return nil, err
	}
	compiler := newCompiler(set)
	if compiler.Compile(parsed); compiler.Failed() {
		return nil, compiler.Errors
	}
	if len(compiler.GetRulesExact(ast.MustParseRef(entrypoint))) == 0 {
		return nil, fmt.Errorf("no rule %s: a policy must define it", entrypoint)
	}
	return compiler, closed(compiler)
}

func newCompiler(set *ast.SchemaSet) *ast.Compiler {
	compiler := ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithStrict(true).
		WithSchemas(set).
		WithUseTypeCheckAnnotations(true). // without it the schemas are ignored in silence
		WithDefaultRegoVersion(ast.RegoV1)
	compiler.SetErrorLimit(0) // all errors, not the first ten
	return compiler
}

// closed refuses a policy that reads data which does not exist. A misspelt rule of
// another package compiles, and is undefined for ever.
func closed(compiler *ast.Compiler) error {
	bases, err := dependencies.Base(compiler, ast.MustParseBody(entrypoint))
	if err != nil {
		return fmt.Errorf("list what the policy reads: %w", err)
	}
	set, err := schemaSet()
	if err != nil {
		return err
	}
	var errs []error
	for _, ref := range bases {
		if !ref.HasPrefix(ast.InputRootRef) && !described(set, ref) {
			errs = append(errs, locate(location(compiler, ref), hintForData(compiler, set, ref),
				fmt.Errorf("%s is not defined: data holds catalog and config as their schemas say, and no module defines such a rule", ref)))
		}
	}
	return errors.Join(errs...)
}

// described reports whether a schema has the path that a ref of data reads, as far as
// the ref is known before evaluation.
func described(set *ast.SchemaSet, ref ast.Ref) bool {
	path := stringsOf(ref)
	if len(path) == 0 {
		return false
	}
	schema := set.Get(ast.SchemaRootRef.Append(ast.StringTerm(path[0])))
	if schema == nil || path[0] != "catalog" && path[0] != "config" {
		return false
	}
	for _, key := range path[1:] {
		object, _ := schema.(map[string]any)
		properties, ok := object["properties"].(map[string]any)
		if !ok {
			return true // a map or a list: its keys are the cluster's
		}
		if schema, ok = properties[key]; !ok {
			return false
		}
	}
	return true
}

// stringsOf returns the constant keys of a ref below its root.
func stringsOf(ref ast.Ref) []string {
	var path []string
	for _, term := range ref[1:] {
		key, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(key))
	}
	return path
}

// location finds where a ref is read, the first by file and line; nil where it cannot.
func location(compiler *ast.Compiler, ref ast.Ref) *ast.Location {
	var where *ast.Location
	for _, module := range compiler.Modules {
		ast.WalkRefs(module, func(r ast.Ref) bool {
			if len(r) > 0 && r[0].Location != nil && r.ConstantPrefix().HasPrefix(ref) && (where == nil || r[0].Location.Compare(where) < 0) {
				where = r[0].Location
			}
			return false
		})
	}
	return where
}

// schemaSet holds input.json as the schema of input, and the others under
// schema.NAME for the annotations of modules.
func schemaSet() (*ast.SchemaSet, error) {
	set := ast.NewSchemaSet()
	names, err := fs.Glob(schemas.Files, "*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := schemas.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var schema any
		if err := util.Unmarshal(raw, &schema); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		ref := ast.SchemaRootRef
		if name != "input.json" {
			ref = ref.Append(ast.StringTerm(strings.TrimSuffix(name, ".json")))
		}
		set.Put(ref, schema)
	}
	return set, nil
}
