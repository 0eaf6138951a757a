package policies

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Snapshot is a policy over a catalog, immutable. It may decide for any number of
// goroutines at once.
type Snapshot struct {
	policy  *policy
	catalog *catalog.Catalog
	query   rego.PreparedEvalQuery // by rules
	data    *ast.Term              // of the program
	facts   facts
	memory  *memory
}

func newSnapshot(ctx context.Context, p *policy, c *catalog.Catalog, counts *counts) (*Snapshot, error) {
	data, err := documents(c, p.config)
	if err != nil {
		return nil, err
	}
	store := inmem.NewFromASTObject(data)
	query, err := rego.New(
		rego.Compiler(p.compiler),
		rego.Store(store),
		rego.ParsedQuery(ast.MustParseBody(entrypoint)),
		// A builtin that is given what it cannot take must not make a rule undefined:
		// a denial would silently not fire.
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := newFacts(ctx, p, store, &counts.watchdog)
	if err != nil {
		return nil, err
	}
	memory, err := newMemory(counts)
	if err != nil {
		return nil, err
	}
	return &Snapshot{policy: p, catalog: c, query: query, data: ast.NewTerm(data), facts: facts, memory: memory}, nil
}

// documents are the two that a policy may read, by name.
func documents(c *catalog.Catalog, config Config) (ast.Object, error) {
	documents := ast.NewObject()
	for name, document := range map[string]any{"catalog": c, "config": config} {
		value, err := ast.InterfaceToValue(document)
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", name, err)
		}
		documents.Insert(ast.InternedTerm(name), ast.NewTerm(value))
	}
	return documents, nil
}

func newStore(c *catalog.Catalog, config Config) (storage.Store, error) {
	documents, err := documents(c, config)
	if err != nil {
		return nil, err
	}
	return inmem.NewFromASTObject(documents), nil
}

// Revision identifies the policy and its configuration.
func (s *Snapshot) Revision() string { return s.policy.revision }

// Catalog is the catalog that decisions of this snapshot read.
func (s *Snapshot) Catalog() *catalog.Catalog { return s.catalog }

// Config is the configuration that decisions of this snapshot read.
func (s *Snapshot) Config() *Config { return &s.policy.config }

// Decide answers for one pod. A pod that looks to the policy like one before it gets that
// one's decision, which the caller must not change. The error is a [*Fault] where the
// policy is to blame and another error where the input cannot be read.
func (s *Snapshot) Decide(ctx context.Context, in Input) (Decision, error) {
	key, err := in.keyOf(s.catalog, s.policy.reads)
	if err != nil {
		return Decision{}, err
	}
	return s.memory.decide(ctx, key, func(ctx context.Context) (Decision, error) { return s.Evaluate(ctx, in) })
}
