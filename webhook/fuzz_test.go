package webhook

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// podSeeds are pods, and what is nearly one.
func podSeeds() []json.RawMessage {
	d := newDice(propertySeed)
	c := d.cluster()
	seeds := []json.RawMessage{
		pod(""),
		pod(`"runtimeClassName": "gvisor", "nodeSelector": {"example.com/pool": "gvisor", "a/b~c": "1"}, "tolerations": [{"key": "x", "operator": "Exists"}], "overhead": {"cpu": "50m", "memory": "64Mi"}`),
		pod(`"runtimeClassName": "crun", "hostNetwork": true, "nodeSelector": null, "tolerations": null, "overhead": null`),
		json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"runtimeclass-router.io/trust": "x"}, "labels": {"runtimeclass-router.io/trust": "untrusted"}}, "spec": {"containers": [{}]}}`),
		json.RawMessage(`{"apiVersion": "v1", "kind": "Pod"}`), json.RawMessage(`null`), json.RawMessage(`[1e999]`), json.RawMessage(``),
	}
	for range 8 {
		seeds = append(seeds, d.pod(c))
	}
	return seeds
}

// canonical reports whether a pod gives each key once, as the API server does: what
// applies patches may take another one of two than we do.
func canonical(raw json.RawMessage) bool {
	var object map[string]any
	strict, err := kjson.UnmarshalStrict(raw, &object)
	return err == nil && len(strict) == 0
}

// FuzzRoute: whatever a pod looks like, there is no panic, the policy's plan and its rules
// agree, every error is of a known kind, and every patch applies.
func FuzzRoute(f *testing.F) {
	for _, seed := range podSeeds() {
		f.Add([]byte(seed))
	}
	router, namespaces := newRouter(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		pod, err := readPod(raw)
		if err != nil {
			if !errors.Is(err, ErrUndecodable) {
				t.Fatal(err)
			}
			return
		}
		for _, namespace := range []string{"untrusted", "trusted"} {
			in := policies.Input{Namespace: *namespaces[namespace], Pod: pod}
			checkEvaluators(t, router.Engine, in)
			route, err := router.Route(t.Context(), in)
			var fault *policies.Fault
			if err != nil {
				if len(route.Patch) > 0 {
					t.Fatalf("a patch beside an error: %v", err)
				}
				if errors.As(err, &fault) && fault.Kind == policies.Unsafe {
					t.Fatalf("the shipped policy is unsafe: %v", err)
				}
				continue
			}
			if canonical(raw) {
				checkPatch(t, router, namespaces[namespace], raw, route.Patch)
			}
		}
	})
}

// FuzzMutatePod: whatever a body looks like, the answer is a well-formed review.
func FuzzMutatePod(f *testing.F) {
	for _, seed := range podSeeds() {
		if len(seed) > 0 {
			f.Add(review("untrusted", seed))
		}
	}
	for _, seed := range []string{"", "{", "null", "[]", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`,
		`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "UPDATE", "subResource": "status"}}`} {
		f.Add([]byte(seed))
	}
	handler, _ := newHandler(f)
	endpoint := &Endpoint{Handler: handler, Log: logr.Discard()}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := answer(t, post(t, endpoint, body))
		if len(got.Patch) == 0 {
			return
		}
		var request admissionv1.AdmissionReview
		var ops []jsonpatch.Operation
		if err := errors.Join(json.Unmarshal(body, &request), json.Unmarshal(got.Patch, &ops)); err != nil {
			t.Fatal(err)
		}
		if got.UID != request.Request.UID {
			t.Fatalf("uid %q of the request, %q of the answer", request.Request.UID, got.UID)
		}
		if raw := request.Request.Object.Raw; canonical(raw) {
			apply(t, raw, ops)
		}
	})
}
