package certs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/runtimeclass-router/runtimeclass-router/certs"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	self := certs.Options{
		Mode:                 certs.Self,
		Directory:            "/tls",
		Namespace:            "router",
		SecretName:           "router-tls",
		ServiceName:          "router",
		WebhookConfiguration: "pods.example.com",
	}
	with := func(change func(*certs.Options)) certs.Options {
		o := self
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		options certs.Options
		want    []string // type and field of each fault
	}{
		"self":      {options: self},
		"directory": {options: certs.Options{Mode: certs.Directory, Directory: "/tls"}},
		"nothing": {
			want: []string{"FieldValueRequired certs.mode", "FieldValueRequired certs.directory"},
		},
		"unknown mode": {
			options: with(func(o *certs.Options) { o.Mode = "Self" }),
			want:    []string{"FieldValueNotSupported certs.mode"},
		},
		"relative directory": {
			options: with(func(o *certs.Options) { o.Directory = "tls" }),
			want:    []string{"FieldValueInvalid certs.directory"},
		},
		"self without names": {
			options: certs.Options{Mode: certs.Self, Directory: "/tls"},
			want: []string{
				"FieldValueRequired certs.namespace",
				"FieldValueRequired certs.secretName",
				"FieldValueRequired certs.serviceName",
				"FieldValueRequired certs.webhookConfiguration",
			},
		},
		"self with names that are none": {
			options: with(func(o *certs.Options) {
				o.Namespace, o.SecretName, o.ServiceName, o.WebhookConfiguration = "a.b", "A", "a.b", "a/b"
			}),
			want: []string{
				"FieldValueInvalid certs.namespace",
				"FieldValueInvalid certs.secretName",
				"FieldValueInvalid certs.serviceName",
				"FieldValueInvalid certs.webhookConfiguration",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range test.options.Validate(field.NewPath("certs")) {
				got = append(got, string(err.Type)+" "+err.Field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
