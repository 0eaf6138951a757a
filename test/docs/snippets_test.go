package docs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/format"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestRego loads every policy that a page shows as an author would: added to the
// shipped one, and with the tests of the block that follows it. A block that is
// neither a module of router.custom nor its test has no business on a page.
func TestRego(t *testing.T) {
	t.Parallel()
	blocks := blocksOf(t, readPages(t), "rego")
	for i, b := range blocks {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			formatted, err := format.Source("snippet.rego", []byte(b.text))
			if err != nil {
				t.Fatal(err)
			}
			if string(formatted) != b.text {
				t.Errorf("not formatted; opa fmt writes:\n%s", formatted)
			}
			modules := policies.Modules{"snippet.rego": b.text}
			switch {
			case isTest(&b) && i > 0 && !isTest(&blocks[i-1]):
				modules = policies.Modules{"snippet.rego": blocks[i-1].text, "snippet_test.rego": b.text}
			case packageOf(&b) != "router.custom":
				t.Fatal("neither a module of package router.custom, nor the test of the one before it")
			}
			all, err := policies.Shipped().Extend(modules)
			if err != nil {
				t.Fatal(err)
			}
			if err := policies.NewEngine().Load(t.Context(), all, policies.DefaultConfig()); err != nil {
				t.Error(err)
			}
		})
	}
}

var packageLine = regexp.MustCompile(`(?m)^package (\S+)$`)

// packageOf is the package of a module, and "" where there is none.
func packageOf(b *block) string {
	if m := packageLine.FindStringSubmatch(b.text); m != nil {
		return m[1]
	}
	return ""
}

func isTest(b *block) bool { return strings.HasSuffix(packageOf(b), "_test") }

// TestYAML decodes every YAML block: a RouterConfiguration by the command line, values
// of the chart by their keys, and anything else strictly, as Kubernetes objects.
func TestYAML(t *testing.T) {
	t.Parallel()
	for _, b := range blocksOf(t, readPages(t), "yaml") {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			switch {
			case strings.Contains(b.text, "kind: RouterConfiguration"):
				checkConfiguration(t, b.text)
			case strings.HasPrefix(b.text, "# values.yaml"):
				checkValues(t, b.text)
			default:
				checkManifests(t, b.text)
			}
		})
	}
}

func checkConfiguration(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/runtimeclass-router", "route", "--config", file, "-f", "examples/")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// checkValues compares keys with those of the chart, down to maps that the chart leaves
// empty: what goes there is not the chart's to say.
func checkValues(t *testing.T, text string) {
	t.Helper()
	var given, known map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &given); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "charts/runtimeclass-router/values.yaml")), &known); err != nil {
		t.Fatal(err)
	}
	for _, fault := range unknownKeys("", given, known) {
		t.Error(fault)
	}
	if router, ok := given["router"]; ok {
		raw, err := yaml.Marshal(router)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policies.ParseConfig(raw); err != nil {
			t.Errorf("router: %v", err)
		}
	}
}

func unknownKeys(prefix string, given, known map[string]any) (faults []string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, ok := known[key]
		if !ok {
			faults = append(faults, fmt.Sprintf("the chart has no value %s%s", prefix, key))
			continue
		}
		below, isMap := given[key].(map[string]any)
		if knownBelow, ok := value.(map[string]any); ok && isMap && len(knownBelow) > 0 {
			faults = append(faults, unknownKeys(prefix+key+".", below, knownBelow)...)
		}
	}
	return faults
}

func checkManifests(t *testing.T, text string) {
	t.Helper()
	manifests, err := catalog.ReadManifests([]string{catalog.Stdin}, bytes.NewBufferString(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifests.Documents {
		for _, w := range d.Warnings {
			t.Errorf("%s: %s", d.GVK.Kind, w)
		}
	}
}
