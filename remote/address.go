package remote

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateURL finds what is wrong with the address of a server: it is https, or http where
// there are no credentials, or has another scheme that the caller knows.
func (a Access) ValidateURL(path *field.Path, address string, more ...string) (*url.URL, field.ErrorList) {
	location, err := url.Parse(address)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, address, "is no URL")}
	}
	if location.User != nil { // the value is not shown: there is a password in it
		return nil, field.ErrorList{field.Forbidden(path, "credentials in the URL end up in logs: put them into the files of credentialsDirectory")}
	}
	schemes := append([]string{"https", "http"}, more...)
	switch {
	case !slices.Contains(schemes, location.Scheme):
		last := len(schemes) - 1
		return nil, field.ErrorList{field.Invalid(path, address, fmt.Sprintf("want %s:// or %s://", strings.Join(schemes[:last], "://, "), schemes[last]))}
	case location.Scheme == "http" && a.CredentialsDirectory != "":
		return nil, field.ErrorList{field.Invalid(path, address, "would send the credentials unencrypted: use https")}
	case location.Host == "":
		return nil, field.ErrorList{field.Invalid(path, address, "names no host")}
	}
	return location, nil
}

// ValidatePaths finds what is wrong with the names of files, by the keys below path.
func ValidatePaths(path *field.Path, files map[string]string) (errs field.ErrorList) {
	for name, value := range files {
		if value != "" && !filepath.IsAbs(value) {
			errs = append(errs, field.Invalid(path.Child(name), value, "must be an absolute path"))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}
