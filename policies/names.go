package policies

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/policies/schemas"
)

// The names of the fields of a pod are most of the text of an input document. OPA keeps a
// table of text that it need not make a term of each time, which may be added to before
// anything else runs.
func init() {
	names := map[string]bool{}
	var schema any
	raw, err := schemas.Files.ReadFile("input.json")
	if err == nil {
		err = json.Unmarshal(raw, &schema)
	}
	if err != nil {
		panic(err) // it is embedded
	}
	collectNames(schema, names)
	ast.InternStringTerm(slices.Collect(maps.Keys(names))...)
}

// collectNames adds the names of all properties of a schema.
func collectNames(schema any, names map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			collectNames(item, names)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				names[name] = true
			}
		}
		for _, inner := range s {
			collectNames(inner, names)
		}
	}
}
