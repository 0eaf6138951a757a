package certs

import (
	"path/filepath"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode says who looks after the certificate.
type Mode string

const (
	// Self means that the product makes the certificate, injects its CA into the webhook
	// configuration, and renews both.
	Self Mode = "self"
	// Directory means that someone else puts the pair into the directory, and its CA into the
	// webhook configuration.
	Directory Mode = "directory"
)

// Options is the certs section of the configuration file.
type Options struct {
	// Mode is required.
	Mode Mode `json:"mode"`
	// Directory is the absolute path of the directory that holds tls.crt and
	// tls.key. In mode self it is where the Secret is mounted.
	Directory string `json:"directory"`

	// Namespace is that of the Secret and the Service. This and the fields below
	// are required in mode self, and not read in mode directory.
	Namespace string `json:"namespace"`
	// SecretName names the Secret that the certificate is kept in. It must exist,
	// with or without data.
	SecretName string `json:"secretName"`
	// ServiceName names the Service that the certificate is for.
	ServiceName string `json:"serviceName"`
	// WebhookConfiguration names the MutatingWebhookConfiguration and the
	// ValidatingWebhookConfiguration whose caBundles are kept in step. Both must
	// exist.
	WebhookConfiguration string `json:"webhookConfiguration"`
}

// Validate returns every fault of o, each with its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch o.Mode {
	case Self:
		errs = append(errs, validateName(path.Child("namespace"), o.Namespace, apivalidation.ValidateNamespaceName)...)
		errs = append(errs, validateName(path.Child("secretName"), o.SecretName, apivalidation.NameIsDNSSubdomain)...)
		errs = append(errs, validateName(path.Child("serviceName"), o.ServiceName, apivalidation.NameIsDNSLabel)...)
		errs = append(errs, validateName(path.Child("webhookConfiguration"), o.WebhookConfiguration, apivalidation.NameIsDNSSubdomain)...)
	case Directory:
	case "":
		errs = append(errs, field.Required(path.Child("mode"), "one of directory, self"))
	default:
		errs = append(errs, field.NotSupported(path.Child("mode"), o.Mode, []Mode{Directory, Self}))
	}
	switch directory := path.Child("directory"); {
	case o.Directory == "":
		errs = append(errs, field.Required(directory, "where tls.crt and tls.key are"))
	case !filepath.IsAbs(o.Directory):
		errs = append(errs, field.Invalid(directory, o.Directory, "must be an absolute path"))
	}
	return errs
}

func validateName(path *field.Path, name string, validate apivalidation.ValidateNameFunc) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "mode self needs it")}
	}
	var errs field.ErrorList
	for _, message := range validate(name, false) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}
