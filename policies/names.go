package policies

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/policies/schemas"
)

// fieldNames are the names of the fields of an input document, by themselves: most of what is
// read. None is allocated again, here or, as a term, by OPA, which has such a table that may
// be added to before anything else runs.
var fieldNames = map[string]string{}

func init() {
	var schema any
	raw, err := schemas.Files.ReadFile("input.json")
	if err == nil {
		err = json.Unmarshal(raw, &schema)
	}
	if err != nil {
		panic(err) // it is embedded
	}
	collectNames(schema)
	ast.InternStringTerm(slices.Collect(maps.Keys(fieldNames))...)
}

// readName reads the name of a member.
func readName(decoder *jsontext.Decoder) (string, error) {
	quoted, err := decoder.ReadValue()
	if err != nil {
		return "", err
	}
	if name, ok := fieldNames[string(quoted[1:len(quoted)-1])]; ok {
		return name, nil // none of them has anything to unquote
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	return string(name), err
}

// collectNames adds the names of all properties of a schema.
func collectNames(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			collectNames(item)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				fieldNames[name] = name
			}
		}
		for _, inner := range s {
			collectNames(inner)
		}
	}
}
