package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/decisionlog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
	"github.com/runtimeclass-router/runtimeclass-router/shadow"
)

const (
	configAPIVersion = "runtimeclass-router.io/v1alpha1"
	configKind       = "RouterConfiguration"
)

//go:embed config.yaml
var defaultConfig []byte

// config is the file that --config names; config.yaml documents every field and
// holds the defaults.
type config struct {
	metav1.TypeMeta `json:",inline"`

	Webhook webhookConfig  `json:"webhook"`
	Metrics endpointConfig `json:"metrics"`
	Health  endpointConfig `json:"health"`
	Certs   certs.Options  `json:"certs"`
	// Guards say where the parameters of the in-process guards are written.
	Guards backstop.Options `json:"guards"`
	// Audit says whether running pods are looked at.
	Audit audit.Options `json:"audit"`
	Log   logConfig     `json:"log"`
	// DecisionLog says what is told of decisions.
	DecisionLog decisionlog.Options `json:"decisionLog"`
	Policies    policiesConfig      `json:"policies"`
	// Shadow is a second policy, which is never enforced.
	Shadow shadow.Options `json:"shadow"`
	// Router is laid over the policy's own defaults; see [policies.ParseConfig].
	Router json.RawMessage `json:"router"`

	router policies.Config
}

type webhookConfig struct {
	Host     string          `json:"host"`
	Port     int             `json:"port"`
	Deadline metav1.Duration `json:"deadline"`
	Drain    metav1.Duration `json:"drain"`
	// Configuration names both webhook configurations; ArmAfter is how long after a probe
	// found the process ready they are armed.
	Configuration string          `json:"configuration"`
	ArmAfter      metav1.Duration `json:"armAfter"`
}

type endpointConfig struct {
	BindAddress string `json:"bindAddress"`
}

type logConfig struct {
	Format string `json:"format"`
	Level  int    `json:"level"`
}

type policiesConfig struct {
	Mode            string `json:"mode"`
	sources.Options `json:",inline"`
}

// replace reports whether what the sources hold takes the shipped policy's place.
func (p *policiesConfig) replace() bool { return p.Mode == "replace" }

// loadConfig reads the defaults and, over them, the file; path "" means none. What
// is wrong with the file is returned at once, each fault with its field.
func loadConfig(path string) (*config, error) {
	c := &config{}
	if err := c.lay(defaultConfig); err != nil {
		return nil, fmt.Errorf("embedded default configuration: %w", err)
	}
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
		if err := c.lay(raw); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
	}
	return c, nil
}

// lay decodes strictly over what is there.
func (c *config) lay(layer []byte) error {
	raw, err := yaml.YAMLToJSONStrict(layer)
	if err != nil {
		return err
	}
	c.TypeMeta = metav1.TypeMeta{}
	strict, err := kjson.UnmarshalStrict(raw, c)
	if err := errors.Join(append(strict, err)...); err != nil {
		return err
	}
	var errs []error
	if c.APIVersion != configAPIVersion || c.Kind != configKind {
		errs = append(errs, fmt.Errorf("apiVersion %q, kind %q: want %s, %s", c.APIVersion, c.Kind, configAPIVersion, configKind))
	}
	if c.router, err = policies.ParseConfig(c.Router); err != nil {
		errs = append(errs, fmt.Errorf("router: %w", err))
	}
	return errors.Join(errs...)
}

// validate returns every fault of the configuration as it stands after flags.
func (c *config) validate() error {
	errs := c.router.Validate(field.NewPath("router"))
	errs = append(errs, c.Certs.Validate(field.NewPath("certs"))...)
	errs = append(errs, c.Guards.Validate(field.NewPath("guards"))...)
	errs = append(errs, c.DecisionLog.Validate(field.NewPath("decisionLog"))...)
	errs = append(errs, c.Audit.Validate(field.NewPath("audit"))...)
	hook := field.NewPath("webhook")
	if c.Webhook.Port < 1 || c.Webhook.Port > 65535 {
		errs = append(errs, field.Invalid(hook.Child("port"), c.Webhook.Port, "must be from 1 to 65535"))
	}
	if c.Webhook.Deadline.Duration <= 0 {
		errs = append(errs, field.Invalid(hook.Child("deadline"), c.Webhook.Deadline.Duration.String(), "must be more than 0"))
	}
	if c.Webhook.Drain.Duration < 0 {
		errs = append(errs, field.Invalid(hook.Child("drain"), c.Webhook.Drain.Duration.String(), "must not be negative"))
	}
	if c.Webhook.ArmAfter.Duration < 0 {
		errs = append(errs, field.Invalid(hook.Child("armAfter"), c.Webhook.ArmAfter.Duration.String(), "must not be negative"))
	}
	switch name := c.Webhook.Configuration; {
	case name == "" && c.Certs.Mode == certs.Self:
		errs = append(errs, field.Required(hook.Child("configuration"), "certs.mode self writes its CA there"))
	case name != "":
		for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(hook.Child("configuration"), name, message))
		}
	}
	if formats := []string{"json", "text"}; !slices.Contains(formats, c.Log.Format) {
		errs = append(errs, field.NotSupported(field.NewPath("log", "format"), c.Log.Format, formats))
	}
	if modes := []string{"extend", "replace"}; !slices.Contains(modes, c.Policies.Mode) {
		errs = append(errs, field.NotSupported(field.NewPath("policies", "mode"), c.Policies.Mode, modes))
	}
	if c.Policies.replace() && !c.Policies.Any() {
		errs = append(errs, field.Invalid(field.NewPath("policies", "mode"), c.Policies.Mode,
			"needs a policy to put in the shipped one's place: set policies.directory, policies.configMaps.namespace or policies.bundle.url"))
	}
	errs = append(errs, c.Policies.Validate(field.NewPath("policies"))...)
	errs = append(errs, c.Shadow.Validate(field.NewPath("shadow"))...)
	return errs.ToAggregate()
}

// modules are the policy's files as far as they are on this machine; what is left out is
// named in notes.
func (c *config) modules() (modules policies.Modules, notes []string, err error) {
	if c.Policies.ConfigMaps.Namespace != "" {
		notes = append(notes, "the ConfigMaps of policies.configMaps.namespace are not read here")
	}
	if c.Policies.Bundle.URL != "" {
		notes = append(notes, "the bundle of policies.bundle.url is not fetched here")
	}
	if c.Policies.Directory == "" {
		return policies.Shipped(), notes, nil
	}
	given, err := policies.Directory(c.Policies.Directory)
	if err != nil || c.Policies.replace() {
		return given, notes, err
	}
	modules, err = policies.Shipped().Extend(given)
	return modules, notes, err
}
