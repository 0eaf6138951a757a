// Command generate writes input.json, the schema of a policy's input, from the
// OpenAPI document that Kubernetes publishes in its source: the Pod with all it is
// made of, pruned to what a type checker needs.
//
//	go run ./policies/schemas/generate OPENAPI.json >policies/schemas/input.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate OPENAPI.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

type object = map[string]any

const (
	podModel      = "io.k8s.api.core.v1.Pod"
	requestSchema = `{"type": "object", "additionalProperties": false, "properties": {
		"operation": {"type": "string"}, "subResource": {"type": "string"},
		"namespace": {"type": "string"}, "name": {"type": "string"},
		"userInfo": {"type": "object", "additionalProperties": false, "properties": {
			"username": {"type": "string"}, "uid": {"type": "string"},
			"groups": {"type": "array", "items": {"type": "string"}},
			"extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}}},
		"dryRun": {"type": "boolean"}, "date": {"type": "string"}}}`
	nodeSchema = `{"type": "object", "additionalProperties": false, "properties": {
		"runtimeClasses": {"type": "array", "items": {"type": "string"}},
		"reports": {"type": "boolean"}, "selects": {"type": "boolean"},
		"fits": {"type": "array", "items": {"type": "string"}}}}`
	namespaceSchema = `{"type": "object", "additionalProperties": false, "properties": {
		"name": {"type": "string"},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"annotations": {"type": "object", "additionalProperties": {"type": "string"}}}}`
)

func run(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document struct {
		Components struct {
			Schemas map[string]object `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	p := pruner{models: document.Components.Schemas, definitions: object{}}
	pod, err := p.reference(podModel)
	if err != nil {
		return err
	}
	input := object{
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"title":                "input: one pod to decide on",
		"type":                 "object",
		"additionalProperties": false,
		"properties": object{
			"request":   json.RawMessage(requestSchema),
			"namespace": json.RawMessage(namespaceSchema),
			"node":      json.RawMessage(nodeSchema),
			"pod":       pod,
		},
		"definitions": p.definitions,
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(input)
}

type pruner struct {
	models      map[string]object
	definitions object
}

func (p *pruner) reference(model string) (object, error) {
	name := model[strings.LastIndexByte(model, '.')+1:]
	if _, done := p.definitions[name]; !done {
		source, ok := p.models[model]
		if !ok {
			return nil, fmt.Errorf("no model %s", model)
		}
		p.definitions[name] = nil // a model that refers to itself ends here
		pruned, err := p.prune(source)
		if err != nil {
			return nil, err
		}
		p.definitions[name] = pruned
	}
	return object{"$ref": "#/definitions/" + name}, nil
}

// prune keeps types and structure. Anything that may be a string or a number (a
// quantity, a port) stays open.
func (p *pruner) prune(source object) (object, error) {
	if ref, ok := source["$ref"].(string); ok {
		return p.reference(ref[strings.LastIndexByte(ref, '/')+1:])
	}
	if all, ok := source["allOf"].([]any); ok && len(all) == 1 {
		return p.prune(all[0].(object))
	}
	if _, ok := source["oneOf"]; ok {
		return object{}, nil
	}
	pruned := object{}
	if t, ok := source["type"]; ok {
		pruned["type"] = t
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := source[key].(object); ok {
			child, err := p.prune(inner)
			if err != nil {
				return nil, err
			}
			pruned[key] = child
		}
	}
	if properties, ok := source["properties"].(object); ok {
		children := object{}
		for name, inner := range properties {
			child, err := p.prune(inner.(object))
			if err != nil {
				return nil, err
			}
			children[name] = child
		}
		pruned["properties"], pruned["additionalProperties"] = children, false
	}
	return pruned, nil
}
