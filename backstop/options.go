package backstop

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options say where the parameters are written: the guards section of the configuration
// file.
type Options struct {
	// Namespace and ServiceAccount name the object, which must exist. If ServiceAccount
	// is empty, nothing is written and the rest is not read.
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	// Fallback is that of [State].
	Fallback string `json:"fallback"`
}

// Validate returns every fault of o, each with its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	if o.ServiceAccount == "" {
		return nil
	}
	var errs field.ErrorList
	check := func(name, value string, validate apivalidation.ValidateNameFunc) {
		for _, message := range validate(value, false) {
			errs = append(errs, field.Invalid(path.Child(name), value, message))
		}
	}
	check("namespace", o.Namespace, apivalidation.ValidateNamespaceName)
	check("serviceAccount", o.ServiceAccount, apivalidation.ValidateServiceAccountName)
	if o.Fallback != "" {
		check("fallback", o.Fallback, apivalidation.NameIsDNSSubdomain)
	}
	return errs
}
