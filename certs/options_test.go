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
		Mode:        certs.Self,
		Namespace:   "router",
		SecretName:  "router-tls",
		ServiceName: "router",
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
			want: []string{"FieldValueRequired certs.mode"},
		},
		"unknown mode": {
			options: with(func(o *certs.Options) { o.Mode = "Self" }),
			want:    []string{"FieldValueNotSupported certs.mode"},
		},
		"relative directory": {
			options: certs.Options{Mode: certs.Directory, Directory: "tls"},
			want:    []string{"FieldValueInvalid certs.directory"},
		},
		"no directory": {
			options: certs.Options{Mode: certs.Directory},
			want:    []string{"FieldValueRequired certs.directory"},
		},
		"secret": {options: certs.Options{Mode: certs.Secret, Namespace: "router", SecretName: "router-tls"}},
		"secret without names": {
			options: certs.Options{Mode: certs.Secret},
			want:    []string{"FieldValueRequired certs.namespace", "FieldValueRequired certs.secretName"},
		},
		"self without names": {
			options: certs.Options{Mode: certs.Self},
			want: []string{
				"FieldValueRequired certs.namespace",
				"FieldValueRequired certs.secretName",
				"FieldValueRequired certs.serviceName",
			},
		},
		"self with names that are none": {
			options: with(func(o *certs.Options) {
				o.Namespace, o.SecretName, o.ServiceName = "a.b", "A", "a.b"
			}),
			want: []string{
				"FieldValueInvalid certs.namespace",
				"FieldValueInvalid certs.secretName",
				"FieldValueInvalid certs.serviceName",
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
