package decisionlog

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestOptionsNameTheFault(t *testing.T) {
	t.Parallel()
	good := UploadOptions{URL: "https://logs.example/logs", Labels: map[string]string{"cluster": "a"}, CredentialsDirectory: "/c", CAFile: "/ca.crt"}
	for name, test := range map[string]struct {
		edit func(*Options)
		want string
	}{
		"good":              {func(*Options) {}, ""},
		"plain http":        {func(o *Options) { o.Upload = UploadOptions{URL: "http://logs/logs"} }, ""},
		"nothing":           {func(o *Options) { *o = Options{} }, ""},
		"a share above 1":   {func(o *Options) { o.Sample.Allowed = 1.5 }, "d.sample.allowed: Invalid value: 1.5: must be a share"},
		"a share below 0":   {func(o *Options) { o.Sample.Denied = -1 }, "d.sample.denied"},
		"no number":         {func(o *Options) { o.Upload.Sample.Denied = math.NaN() }, "d.upload.sample.denied"},
		"no URL":            {func(o *Options) { o.Upload.URL = "://" }, "d.upload.url: Invalid value"},
		"another scheme":    {func(o *Options) { o.Upload.URL = "oci://a/b" }, "d.upload.url: Invalid value: \"oci://a/b\": want https:// or http://"},
		"no host":           {func(o *Options) { o.Upload.URL = "https:///logs" }, "names no host"},
		"a password":        {func(o *Options) { o.Upload.URL = "https://u:hunter2@logs/logs" }, "d.upload.url: Forbidden: credentials in the URL"},
		"unencrypted":       {func(o *Options) { o.Upload.URL = "http://logs/logs" }, "would send the credentials unencrypted"},
		"a relative path":   {func(o *Options) { o.Upload.CAFile = "ca.crt" }, "d.upload.caFile: Invalid value"},
		"nowhere to send":   {func(o *Options) { o.Upload.URL = "" }, "d.upload.url: Required value"},
		"one of our labels": {func(o *Options) { o.Upload.Labels = map[string]string{"id": "x"} }, "d.upload.labels[id]: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Sample: Sample{Denied: 1}, Upload: good}
			test.edit(&o)
			errs := o.Validate(field.NewPath("d"))
			if test.want == "" {
				if len(errs) > 0 {
					t.Error(errs)
				}
				return
			}
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) || strings.Contains(errs[0].Error(), "hunter2") {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}
