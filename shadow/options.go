package shadow

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
)

// Options say what the second policy is, and what it may take.
type Options struct {
	// Mode is extend or replace, as for the policy in force. The files stand in place of all
	// files that are in force, but for the shipped ones in mode extend.
	Mode            string `json:"mode"`
	sources.Options `json:",inline"`
	// PerSecond bounds how many decisions are looked at.
	PerSecond int `json:"perSecond"`
	// Sample is the share of differences that is logged, from 0 to 1.
	Sample float64 `json:"sample"`
}

// Enabled reports whether there is any place that a second policy may come from.
func (o *Options) Enabled() bool { return o.Any() }

// Validate returns every fault, each with the path of its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	errs := o.Options.Validate(path)
	if modes := []string{"extend", "replace"}; o.Mode != modes[0] && o.Mode != modes[1] {
		errs = append(errs, field.NotSupported(path.Child("mode"), o.Mode, modes))
	}
	if o.PerSecond < 1 {
		errs = append(errs, field.Invalid(path.Child("perSecond"), o.PerSecond, "must be at least 1"))
	}
	if !(o.Sample >= 0 && o.Sample <= 1) {
		errs = append(errs, field.Invalid(path.Child("sample"), o.Sample, "must be a share, from 0 (none) to 1 (all)"))
	}
	return errs
}
