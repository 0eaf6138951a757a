package decisionlog

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/runtimeclass-router/runtimeclass-router/remote"
)

// Options say what is told of decisions, and to whom.
type Options struct {
	// Sample is what is written to standard output.
	Sample Sample `json:"sample"`
	// Events writes an Event on the controller of each pod that is refused.
	Events bool          `json:"events"`
	Upload UploadOptions `json:"upload"`
}

// Sample are shares of decisions, from 0 to 1. Those that end in an error are never left out.
type Sample struct {
	Allowed float64 `json:"allowed"`
	// Denied counts what is denied, and in modes warn and audit what would be.
	Denied float64 `json:"denied"`
}

// UploadOptions say where decisions are sent in OPA's format for decision logs.
type UploadOptions struct {
	// URL takes a POST, https://HOST/logs say; empty for none.
	URL    string `json:"url"`
	Sample Sample `json:"sample"`
	// Labels are added to those of each decision: a cluster's name, say.
	Labels map[string]string `json:"labels"`
	// CredentialsDirectory has the files username and password, or token.
	CredentialsDirectory string `json:"credentialsDirectory"`
	// CAFile holds the certificates, PEM, that the server's is verified with; empty for
	// those of the system.
	CAFile string `json:"caFile"`
}

func (u *UploadOptions) access() remote.Access {
	return remote.Access{CredentialsDirectory: u.CredentialsDirectory, CAFile: u.CAFile}
}

// Validate returns every fault, each with the path of its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	return append(o.Sample.validate(path.Child("sample")), o.Upload.validate(path.Child("upload"))...)
}

func (s *Sample) validate(path *field.Path) (errs field.ErrorList) {
	shares := map[string]float64{"allowed": s.Allowed, "denied": s.Denied}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if share := shares[name]; !(share >= 0 && share <= 1) {
			errs = append(errs, field.Invalid(path.Child(name), share, "must be a share, from 0 (none) to 1 (all)"))
		}
	}
	return errs
}

func (u *UploadOptions) validate(path *field.Path) field.ErrorList {
	errs := u.Sample.validate(path.Child("sample"))
	if u.URL == "" {
		if u.CredentialsDirectory != "" || u.CAFile != "" || len(u.Labels) > 0 {
			errs = append(errs, field.Required(path.Child("url"), "the other keys of upload say how to send decisions, and no server is named"))
		}
		return errs
	}
	_, faults := u.access().ValidateURL(path.Child("url"), u.URL)
	errs = append(errs, faults...)
	for _, name := range slices.Sorted(maps.Keys(ownLabels("", ""))) {
		if _, ok := u.Labels[name]; ok {
			errs = append(errs, field.Forbidden(path.Child("labels").Key(name), "the product sets it: use another name"))
		}
	}
	return append(errs, remote.ValidatePaths(path, map[string]string{"credentialsDirectory": u.CredentialsDirectory, "caFile": u.CAFile})...)
}
