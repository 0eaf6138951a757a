package policies

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/open-policy-agent/opa/v1/util"

	"github.com/runtimeclass-router/runtimeclass-router/policies/schemas"
)

func TestDefaultConfigIsValid(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if errs := c.Validate(field.NewPath("router")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestParseConfigLaysKeysOverTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig([]byte("gpuRuntimes: [kata-qemu]\nlevels:\n- {name: all, floor: guest-kernel, candidates: {general: [kata-fc]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.GPURuntimes = []string{"kata-qemu"}
	want.Levels = []Level{{Name: "all", Floor: "guest-kernel", Candidates: map[string][]string{"general": {"kata-fc"}}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestParseConfigRefusesUnknownKeys(t *testing.T) {
	t.Parallel()
	_, err := ParseConfig([]byte("gpuRuntime: [a]\nunlabelledNamespaces: {trust: trusted, modus: warn}\n"))
	if err == nil || !strings.Contains(err.Error(), `unknown field "gpuRuntime"`) || !strings.Contains(err.Error(), `unknown field "unlabelledNamespaces.modus"`) {
		t.Errorf("got %v", err)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	c := Config{
		Levels: []Level{
			{Name: "a", Floor: "guest-kernel", Candidates: map[string][]string{"general": {"x"}}},
			{Name: "a", Floor: "host-kernel", Candidates: map[string][]string{"fast": {"x"}}},
			{Floor: "strong"},
		},
		UnlabelledNamespaces: UnlabelledNamespaces{Trust: "b", Mode: "off"},
		AllowedHostPaths:     []string{"etc"},
	}
	got := c.Validate(field.NewPath("router")).ToAggregate().Error()
	for _, want := range []string{
		"router.levels[1].name: Duplicate value", "router.levels[1].floor: Invalid value", "router.levels[1].candidates.general: Required value",
		"router.levels[2].name: Required value", "router.levels[2].floor: Unsupported value",
		"router.unlabelledNamespaces.trust: Unsupported value", "router.unlabelledNamespaces.mode: Unsupported value",
		"router.allowedHostPaths[0]: Invalid value",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q in\n%s", want, got)
		}
	}
	empty := Config{}
	if len(empty.Validate(field.NewPath("router"))) == 0 {
		t.Error("no level at all is accepted")
	}
}

// TestSchemasKnowTheData keeps the hand-written schemas in step with the types: a
// field that only one of them has would be a compile error for authors, or a gap.
func TestSchemasKnowTheData(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]any{
		"config.json":   DefaultConfig(),
		"decision.json": Decision{Action: Route, Trust: "t", RuntimeClassName: "r", NodeSelector: map[string]string{}, Reasons: []string{}, Warnings: []string{}},
	} {
		raw, err := schemas.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct{ Properties map[string]any }
		if err := util.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		for _, diff := range []string{missing(schema.Properties, fields), missing(fields, schema.Properties)} {
			if diff != "" {
				t.Errorf("%s and the type differ in %s", name, diff)
			}
		}
	}
}

func missing(a, b map[string]any) string {
	for key := range a {
		if _, ok := b[key]; !ok {
			return key
		}
	}
	return ""
}
