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
	// configurations, and renews both.
	Self Mode = "self"
	// Secret means that someone else, cert-manager say, keeps the pair in a Secret, and its
	// CA in the webhook configurations.
	Secret Mode = "secret"
	// Directory means that someone else puts the pair into a directory, and its CA into the
	// webhook configurations.
	Directory Mode = "directory"
)

// Options is the certs section of the configuration file.
type Options struct {
	// Mode is required.
	Mode Mode `json:"mode"`
	// Directory is the absolute path of the directory that holds tls.crt and
	// tls.key, in mode directory. The other modes do not read it.
	Directory string `json:"directory"`

	// Namespace is that of the Secret and the Service. It and SecretName are required in
	// modes self and secret, and not read in mode directory.
	Namespace string `json:"namespace"`
	// SecretName names the Secret that the certificate is kept in. In mode self it must
	// exist, with or without data.
	SecretName string `json:"secretName"`
	// ServiceName names the Service that the certificate is made for, in mode self.
	ServiceName string `json:"serviceName"`
}

// dnsName is the name under which the API server calls a Service.
func (o *Options) dnsName() string { return o.ServiceName + "." + o.Namespace + ".svc" }

// Validate returns every fault of o, each with its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch o.Mode {
	case Self, Secret:
		errs = append(errs, o.validateName(path.Child("namespace"), o.Namespace, apivalidation.ValidateNamespaceName)...)
		errs = append(errs, o.validateName(path.Child("secretName"), o.SecretName, apivalidation.NameIsDNSSubdomain)...)
		if o.Mode == Self {
			errs = append(errs, o.validateName(path.Child("serviceName"), o.ServiceName, apivalidation.NameIsDNSLabel)...)
		}
	case Directory:
		switch directory := path.Child("directory"); {
		case o.Directory == "":
			errs = append(errs, field.Required(directory, "where tls.crt and tls.key are"))
		case !filepath.IsAbs(o.Directory):
			errs = append(errs, field.Invalid(directory, o.Directory, "must be an absolute path"))
		}
	case "":
		errs = append(errs, field.Required(path.Child("mode"), "one of directory, secret, self"))
	default:
		errs = append(errs, field.NotSupported(path.Child("mode"), o.Mode, []Mode{Directory, Secret, Self}))
	}
	return errs
}

func (o *Options) validateName(path *field.Path, name string, validate apivalidation.ValidateNameFunc) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "mode "+string(o.Mode)+" needs it")}
	}
	var errs field.ErrorList
	for _, message := range validate(name, false) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}
