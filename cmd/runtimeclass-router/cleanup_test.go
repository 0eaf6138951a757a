package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestCleanup(t *testing.T) {
	t.Parallel()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	all := []runtime.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named("router")},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named("router")},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named("router-backstop")},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named("router-custody")},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: named("router-fallback")},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named("router-backstop")},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named("router-custody")},
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: named("router-fallback")},
	}
	foreign := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named("others")}
	for name, objects := range map[string][]runtime.Object{"whole": all, "half": all[4:], "nothing": nil} {
		var out bytes.Buffer
		clients := fake.NewClientset(append(slices.Clone(objects), foreign)...)
		if err := cleanup(t.Context(), clients, "router", &out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(out.String(), "deleted "); n != len(objects) {
			t.Errorf("%s: %d deleted, want %d:\n%s", name, n, len(objects), &out)
		}
		if _, err := clients.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "others", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	// One that cannot be deleted does not keep the rest.
	var out bytes.Buffer
	clients := fake.NewClientset(all...)
	clients.PrependReactor("delete", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	if err := cleanup(t.Context(), clients, "router", &out); err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration router: no") {
		t.Errorf("%v", err)
	}
	if n := strings.Count(out.String(), "deleted "); n != len(all)-1 {
		t.Errorf("%d deleted, want all but one:\n%s", n, &out)
	}
}
