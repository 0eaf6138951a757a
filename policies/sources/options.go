package sources

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"oras.land/oras-go/v2/registry"

	"github.com/runtimeclass-router/runtimeclass-router/remote"
)

// Options say where policy files come from, beside the shipped ones.
type Options struct {
	// Directory is a folder of .rego files; empty for none.
	Directory  string           `json:"directory"`
	ConfigMaps ConfigMapOptions `json:"configMaps"`
	Bundle     BundleOptions    `json:"bundle"`
}

// ConfigMapOptions say where the ConfigMaps with the policy label are.
type ConfigMapOptions struct {
	// Namespace is the release's own; empty for none.
	Namespace string `json:"namespace"`
}

// BundleOptions say where a bundle is, and what it must be signed with.
type BundleOptions struct {
	// URL is https://, http:// or oci://REGISTRY/REPOSITORY:TAG; empty for none.
	URL          string          `json:"url"`
	PollInterval metav1.Duration `json:"pollInterval"`
	// PersistDirectory keeps the last good bundle, and what a registry sends.
	PersistDirectory string `json:"persistDirectory"`
	// KeysDirectory has a file with a public key, PEM, for each key that may sign.
	KeysDirectory string `json:"keysDirectory"`
	// Algorithm is that of the signatures; empty for the usual one of each key.
	Algorithm string `json:"algorithm"`
	// Unsigned takes any bundle that the server sends.
	Unsigned bool `json:"unsigned"`
	// CredentialsDirectory has the files username and password, or token.
	CredentialsDirectory string `json:"credentialsDirectory"`
	// CAFile holds the certificates, PEM, that the server's is verified with; empty for
	// those of the system.
	CAFile string `json:"caFile"`
}

// algorithms are those that OPA verifies with a public key.
var algorithms = []string{"ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// Any reports whether anything but the shipped policy is asked for.
func (o *Options) Any() bool {
	return o.Directory != "" || o.ConfigMaps.Namespace != "" || o.Bundle.URL != ""
}

// Validate returns every fault, each with the path of its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	if o.Bundle.URL == "" {
		return o.Bundle.validateUnused(path.Child("bundle"))
	}
	return o.Bundle.validate(path.Child("bundle"))
}

// validateUnused finds what would be without effect.
func (b *BundleOptions) validateUnused(path *field.Path) field.ErrorList {
	if b.Unsigned || b.KeysDirectory != "" || b.CredentialsDirectory != "" || b.CAFile != "" {
		return field.ErrorList{field.Required(path.Child("url"), "the other keys of bundle say how to fetch one, and none is named")}
	}
	return nil
}

func (b *BundleOptions) validate(path *field.Path) field.ErrorList {
	errs := b.validateURL(path.Child("url"))
	if b.PollInterval.Duration < time.Second {
		errs = append(errs, field.Invalid(path.Child("pollInterval"), b.PollInterval.Duration.String(), "must be at least 1s"))
	}
	if b.PersistDirectory == "" {
		errs = append(errs, field.Required(path.Child("persistDirectory"), "name a directory that can be written: a restart without the server comes up with the bundle kept there"))
	}
	switch keys := path.Child("keysDirectory"); {
	case b.KeysDirectory == "" && !b.Unsigned:
		errs = append(errs, field.Required(keys, "name the directory with the public keys that verify the bundle, or write unsigned: true to take whatever the server sends"))
	case b.KeysDirectory != "" && b.Unsigned:
		errs = append(errs, field.Invalid(path.Child("unsigned"), true, "contradicts keysDirectory: remove one of the two"))
	}
	if b.Algorithm != "" && !slices.Contains(algorithms, b.Algorithm) {
		errs = append(errs, field.NotSupported(path.Child("algorithm"), b.Algorithm, algorithms))
	}
	errs = append(errs, remote.ValidatePaths(path, map[string]string{
		"persistDirectory": b.PersistDirectory, "keysDirectory": b.KeysDirectory,
		"credentialsDirectory": b.CredentialsDirectory, "caFile": b.CAFile,
	})...)
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func (b *BundleOptions) validateURL(path *field.Path) field.ErrorList {
	_, errs := b.access().ValidateURL(path, b.URL, "oci")
	if len(errs) > 0 || !b.oci() {
		return errs
	}
	if _, err := registry.ParseReference(b.reference()); err != nil {
		return field.ErrorList{field.Invalid(path, b.URL, fmt.Sprintf("want oci://REGISTRY/REPOSITORY:TAG: %v", err))}
	}
	return nil
}

// access is what the server is reached with.
func (b *BundleOptions) access() remote.Access {
	return remote.Access{CredentialsDirectory: b.CredentialsDirectory, CAFile: b.CAFile}
}

// oci reports whether the bundle is in an OCI registry.
func (b *BundleOptions) oci() bool { return strings.HasPrefix(b.URL, "oci://") }

// reference is what an OCI client calls the bundle: REGISTRY/REPOSITORY:TAG.
func (b *BundleOptions) reference() string { return strings.TrimPrefix(b.URL, "oci://") }

// New returns the sources that the options name, the shipped policy first. ConfigMaps are
// those whose policy label has that value, and all that the client is used for.
func New(o Options, value string, client kubernetes.Interface, log logr.Logger) []Source {
	all := []Source{NewEmbedded()}
	if o.Directory != "" {
		all = append(all, NewDirectory(o.Directory))
	}
	if o.ConfigMaps.Namespace != "" {
		all = append(all, NewConfigMaps(client, o.ConfigMaps.Namespace, value))
	}
	if o.Bundle.URL != "" {
		all = append(all, NewBundle(o.Bundle, log))
	}
	return all
}
