package policies

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Mode says what the webhook does with a decision.
type Mode string

// The modes. Warn changes and refuses nothing, and tells in admission warnings and
// audit annotations what enforcing would do; Audit does the same without the
// warnings.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"
	Audit   Mode = "audit"
)

// GeneralProfile is the workload profile of a pod that names none, and the one
// that serves a profile which a level does not list.
const GeneralProfile = "general"

// Config is what policies read as data.config. rego/config.yaml documents each
// field and holds the defaults.
type Config struct {
	Levels               []Level              `json:"levels"`
	UnlabelledNamespaces UnlabelledNamespaces `json:"unlabelledNamespaces"`
	AllowedHostPaths     []string             `json:"allowedHostPaths"`
	PrivilegedRuntimes   []string             `json:"privilegedRuntimes"`
	GPUResources         []string             `json:"gpuResources"`
	GPURuntimes          []string             `json:"gpuRuntimes"`

	AllowedDeviceResources    []string `json:"allowedDeviceResources"`
	AllowedRuntimeAnnotations []string `json:"allowedRuntimeAnnotations"`
	AllowedUnsafeSysctls      []string `json:"allowedUnsafeSysctls"`

	IsolatingVirtualNodes []VirtualNode `json:"isolatingVirtualNodes"`
	Exceptions            []Exception   `json:"exceptions"`
}

// Level is one trust level.
type Level struct {
	Name string `json:"name"`
	// Floor is the least isolation that a pod of the level may get.
	Floor catalog.Isolation `json:"floor"`
	// Candidates are runtimes by workload profile, in order of preference.
	Candidates map[string][]string `json:"candidates"`
}

// UnlabelledNamespaces says how a namespace without a trust label is treated.
type UnlabelledNamespaces struct {
	Trust string `json:"trust"`
	Mode  Mode   `json:"mode"`
}

//go:embed rego/config.yaml
var defaultConfig []byte

// DefaultConfig is the configuration as shipped.
func DefaultConfig() Config {
	c, err := ParseConfig(nil)
	if err != nil {
		panic(fmt.Sprintf("embedded default configuration: %v", err)) // a broken build; a test reads it
	}
	return c
}

// ParseConfig lays the keys of a YAML or JSON object over the default
// configuration and decodes the result strictly. It does not validate.
func ParseConfig(overrides []byte) (Config, error) {
	merged := map[string]json.RawMessage{}
	for _, layer := range [][]byte{defaultConfig, overrides} {
		raw, err := yaml.YAMLToJSONStrict(layer)
		if err != nil {
			return Config{}, err
		}
		if string(raw) == "null" { // nothing is given
			continue
		}
		// Into one map: keys that are given replace, keys that are not stay.
		if err := json.Unmarshal(raw, &merged); err != nil {
			return Config{}, err
		}
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return Config{}, err
	}
	var c Config
	if err := unmarshalStrict(raw, &c); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Position returns where a level stands on the scale, from 0 for the most
// trusted; an unknown name is the least trusted.
func (c *Config) Position(level string) int {
	i := slices.IndexFunc(c.Levels, func(l Level) bool { return l.Name == level })
	if i < 0 {
		return len(c.Levels) - 1
	}
	return i
}

// Known reports whether a level of that name is configured.
func (c *Config) Known(level string) bool {
	return slices.ContainsFunc(c.Levels, func(l Level) bool { return l.Name == level })
}

// Validate returns every fault, each with the path of its field below path.
func (c *Config) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	levels := path.Child("levels")
	if len(c.Levels) == 0 {
		errs = append(errs, field.Required(levels, "name at least one trust level"))
	}
	seen := map[string]bool{}
	for i, level := range c.Levels {
		errs = append(errs, level.validate(levels.Index(i))...)
		if seen[level.Name] {
			errs = append(errs, field.Duplicate(levels.Index(i).Child("name"), level.Name))
		}
		seen[level.Name] = true
		if i > 0 && !level.Floor.AtLeast(c.Levels[i-1].Floor) {
			errs = append(errs, field.Invalid(levels.Index(i).Child("floor"), level.Floor,
				fmt.Sprintf("a less trusted level cannot have a lower floor than %s before it", c.Levels[i-1].Name)))
		}
	}
	unlabelled := path.Child("unlabelledNamespaces")
	if len(c.Levels) > 0 && !seen[c.UnlabelledNamespaces.Trust] {
		errs = append(errs, field.NotSupported(unlabelled.Child("trust"), c.UnlabelledNamespaces.Trust, slices.Sorted(maps.Keys(seen))))
	}
	if modes := []Mode{Enforce, Warn, Audit}; !slices.Contains(modes, c.UnlabelledNamespaces.Mode) {
		errs = append(errs, field.NotSupported(unlabelled.Child("mode"), c.UnlabelledNamespaces.Mode, modes))
	}
	for i, p := range c.AllowedHostPaths {
		if !strings.HasPrefix(p, "/") {
			errs = append(errs, field.Invalid(path.Child("allowedHostPaths").Index(i), p, "must be an absolute path"))
		}
	}
	for i := range c.IsolatingVirtualNodes {
		errs = append(errs, c.IsolatingVirtualNodes[i].validate(path.Child("isolatingVirtualNodes").Index(i))...)
	}
	names := map[string]bool{}
	for i := range c.Exceptions {
		at := path.Child("exceptions").Index(i)
		errs = append(errs, c.Exceptions[i].validate(at)...)
		if name := c.Exceptions[i].Name; names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[c.Exceptions[i].Name] = true
	}
	return errs
}

func (l *Level) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if _, err := catalog.ParseIsolation(string(l.Floor)); err != nil {
		errs = append(errs, field.NotSupported(path.Child("floor"), l.Floor, catalog.Isolations()))
	}
	if len(l.Candidates[GeneralProfile]) == 0 {
		errs = append(errs, field.Required(path.Child("candidates", GeneralProfile),
			"list the runtimes that serve every profile which the level does not list"))
	}
	return errs
}
