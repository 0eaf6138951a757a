package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func readChart(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chartPath, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func schema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(readChart(t, "values.schema.json"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func propertiesOf(node map[string]any) map[string]any {
	properties, _ := node["properties"].(map[string]any)
	return properties
}

// TestSchemaIsInStep: every value is in the schema and every property of the schema is a
// value, down to the maps that values.yaml leaves to the user.
func TestSchemaIsInStep(t *testing.T) {
	t.Parallel()
	var values map[string]any
	if err := yaml.UnmarshalStrict(readChart(t, "values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, values, node map[string]any)
	compare = func(path string, values, node map[string]any) {
		properties := propertiesOf(node)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if _, ok := values[key]; !ok {
				t.Errorf("values.yaml has no %s%s", path, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			property, ok := properties[key].(map[string]any)
			if !ok {
				t.Errorf("values.schema.json has no %s%s", path, key)
				continue
			}
			below, isMap := values[key].(map[string]any)
			if isMap && len(below) > 0 && len(propertiesOf(property)) > 0 && path+key != "resources" {
				compare(path+key+".", below, property)
			}
		}
	}
	compare("", values, schema(t))
}

// TestSchemaIsClosed: an object whose properties are listed has no others. global is
// every chart's.
func TestSchemaIsClosed(t *testing.T) {
	t.Parallel()
	var check func(path string, node any)
	check = func(path string, node any) {
		switch node := node.(type) {
		case []any:
			for _, item := range node {
				check(path+"[]", item)
			}
		case map[string]any:
			if propertiesOf(node) != nil && node["additionalProperties"] != false && path != ".properties.global" {
				t.Errorf("%s is open", path)
			}
			for key, below := range node {
				check(path+"."+key, below)
			}
		}
	}
	s := schema(t)
	if s["$schema"] != "http://json-schema.org/draft-07/schema#" {
		t.Errorf("schema %v", s["$schema"])
	}
	check("", s)
}

// TestSchemaOfRouter: the section is that of the product's own schema.
func TestSchemaOfRouter(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../policies/schemas/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "$schema")
	delete(want, "title")
	if diff := cmp.Diff(any(want), propertiesOf(schema(t))["router"]); diff != "" {
		t.Errorf("router (-policies/schemas/config.json +values.schema.json):\n%s", diff)
	}
}

// TestSchemaRefuses names the value in each refusal.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, where, what string }{
		"misspelt":               {"{repilcas: 3}", "''", "'repilcas'"},
		"misspelt below":         {"{webhook: {prot: 9443}}", "'/webhook'", "'prot'"},
		"misspelt in the router": {"{router: {unlabeledNamespaces: {}}}", "'/router'", "'unlabeledNamespaces'"},
		"misspelt in a list":     {"{runtimeClasses: {list: [{name: a, handler: b, tolerations: []}]}}", "'/runtimeClasses/list/0'", "'tolerations'"},
		"a text for a number":    {`{replicas: "two"}`, "'/replicas'", "want integer"},
		"a port below 1024":      {"{webhook: {port: 443}}", "'/webhook/port'", "1,024"},
		"a port that is none":    {"{metrics: {port: 70000}}", "'/metrics/port'", "65,535"},
		"a long timeout":         {"{webhook: {timeoutSeconds: 31}}", "'/webhook/timeoutSeconds'", "30"},
		"a preset that is none":  {"{preset: gke}", "'/preset'", "'gke-sandbox'"},
		"a share":                {"{decisionLog: {sample: {denied: 2}}}", "'/decisionLog/sample/denied'", "1"},
		"no address":             {"{decisionLog: {upload: {caConfigMap: a}}}", "'/decisionLog/upload'", "'url'"},
		"a switch":               {`{openshift: "yes"}`, "'/openshift'", "'auto'"},
		"a short digest":         {`{image: {digest: "sha256:00"}}`, "'/image/digest'", "pattern"},
		"a namespace pattern":    {`{exemptNamespaces: ["team-*"]}`, "'/exemptNamespaces/0'", "pattern"},
		"a duration":             {`{metrics: {monitor: {interval: soon}}}`, "'/metrics/monitor/interval'", "pattern"},
		"a mode":                 {"{router: {unlabelledNamespaces: {mode: enforced}}}", "'/router/unlabelledNamespaces/mode'", "'enforce'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := template(t, test.values)
			if err == nil || !strings.Contains(err.Error(), "at "+test.where+":") || !strings.Contains(err.Error(), test.what) {
				t.Errorf("error %v, want it at %s and to say %s", err, test.where, test.what)
			}
		})
	}
}

// TestValuesAreDocumented: each value has a comment that helm-docs takes, or is part of
// one that has.
func TestValuesAreDocumented(t *testing.T) {
	t.Parallel()
	raw := string(readChart(t, "values.yaml"))
	lines := strings.Split(strings.TrimSuffix(raw, "\n"), "\n")
	if len(lines) > 250 {
		t.Errorf("values.yaml has %d lines, want 250 at most", len(lines))
	}
	key := regexp.MustCompile(`^( *)([A-Za-z]+):(.*)$`)
	documented, commented := -1, false // the indentation of a documented map, and whether a comment stands before
	for i, line := range lines {
		match := key.FindStringSubmatch(line)
		if match == nil {
			commented = strings.HasPrefix(strings.TrimSpace(line), "# -- ") || commented && strings.HasPrefix(strings.TrimSpace(line), "#")
			continue
		}
		indent, isMap := len(match[1]), match[3] == ""
		switch {
		case documented >= 0 && indent > documented:
		case commented:
			documented = -1
			if isMap {
				documented = indent
			}
		default:
			documented = -1
			if !isMap {
				t.Errorf("values.yaml:%d: %s is not documented", i+1, match[2])
			}
		}
		commented = false
	}
}

// TestLint runs helm lint over the defaults, and over everything at once.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"", "{preset: edera, runtimeClasses: {create: true}, autoscaling: {enabled: true}, metrics: {dashboard: {enabled: true}}}"} {
		if _, err := helm(t, values, "lint", chartPath, "--strict"); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}
