package sources

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// good is a bundle with every key.
func good() BundleOptions {
	return BundleOptions{
		URL: "https://example.com/bundle.tar.gz", PollInterval: metav1.Duration{Duration: time.Minute},
		PersistDirectory: "/var/lib/p", KeysDirectory: "/keys", Algorithm: "ES256",
		CredentialsDirectory: "/credentials", CAFile: "/ca.crt",
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*BundleOptions)
		want   []string
	}{
		"nothing":             {func(b *BundleOptions) { *b = BundleOptions{} }, nil},
		"all":                 {func(*BundleOptions) {}, nil},
		"oci":                 {func(b *BundleOptions) { b.URL = "oci://ghcr.io/org/policies:v1" }, nil},
		"oci by digest":       {func(b *BundleOptions) { b.URL = "oci://ghcr.io/org/p@sha256:" + zeros }, nil},
		"http and open":       {func(b *BundleOptions) { b.URL, b.CredentialsDirectory = "http://a/b", "" }, nil},
		"unsigned":            {func(b *BundleOptions) { b.Unsigned, b.KeysDirectory = true, "" }, nil},
		"neither":             {func(b *BundleOptions) { b.KeysDirectory = "" }, []string{"bundle.keysDirectory: Required value: name the directory with the public keys that verify the bundle, or write unsigned: true to take whatever the server sends"}},
		"both":                {func(b *BundleOptions) { b.Unsigned = true }, []string{"bundle.unsigned: Invalid value: true: contradicts keysDirectory: remove one of the two"}},
		"password in the URL": {func(b *BundleOptions) { b.URL = "https://u:secret@a/b" }, []string{"bundle.url: Forbidden: credentials in the URL end up in logs: put them into the files of credentialsDirectory"}},
		"password over http":  {func(b *BundleOptions) { b.URL = "http://a/b" }, []string{`bundle.url: Invalid value: "http://a/b": would send the credentials unencrypted: use https`}},
		"another scheme":      {func(b *BundleOptions) { b.URL = "s3://a/b" }, []string{`bundle.url: Invalid value: "s3://a/b": want https://, http:// or oci://`}},
		"no host":             {func(b *BundleOptions) { b.URL = "https:///b" }, []string{`bundle.url: Invalid value: "https:///b": names no host`}},
		"no repository":       {func(b *BundleOptions) { b.URL = "oci://ghcr.io" }, []string{`bundle.url: Invalid value: "oci://ghcr.io": want oci://REGISTRY/REPOSITORY:TAG: invalid reference: missing registry or repository`}},
		"keys without a URL":  {func(b *BundleOptions) { b.URL = "" }, []string{"bundle.url: Required value: the other keys of bundle say how to fetch one, and none is named"}},
		"much at once": {func(b *BundleOptions) {
			b.PollInterval, b.PersistDirectory, b.Algorithm, b.CAFile = metav1.Duration{}, "", "HS256", "ca.crt"
		}, []string{
			`bundle.algorithm: Unsupported value: "HS256": supported values: "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"`,
			`bundle.caFile: Invalid value: "ca.crt": must be an absolute path`,
			"bundle.persistDirectory: Required value: name a directory that can be written: a restart without the server comes up with the bundle kept there",
			`bundle.pollInterval: Invalid value: "0s": must be at least 1s`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Bundle: good()}
			test.change(&o.Bundle)
			var got []string
			for _, err := range o.Validate(field.NewPath("policies")) {
				got = append(got, strings.TrimPrefix(err.Error(), "policies."))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	o := Options{Directory: "/d", ConfigMaps: ConfigMapOptions{Namespace: "n"}, Bundle: good()}
	var got []string
	for _, source := range New(o, catalog.PolicyLabelValue, nil, discard) {
		got = append(got, source.ID().String())
	}
	if diff := cmp.Diff([]string{"embedded", "directory /d", "configMaps n", "bundle https://example.com/bundle.tar.gz"}, got); diff != "" {
		t.Error(diff)
	}
	if none := New(Options{}, catalog.PolicyLabelValue, nil, discard); len(none) != 1 || (&Options{}).Any() {
		t.Errorf("%v", none)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
