package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// TestUnknownFieldsAreNotDropped: the patch names allowed paths only, takes nothing away,
// and leaves every field that no type here knows.
func TestUnknownFieldsAreNotDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	request := request(t, shape(t, "review-fields-of-tomorrow"), Untrusted)
	answer := webhook.NewHandler(b.options(t)).Handle(t.Context(), request)
	if len(answer.Patches) == 0 {
		t.Fatalf("no patch: %+v", answer)
	}
	for _, operation := range answer.Patches {
		allowed := false
		for _, path := range []string{"/spec/runtimeClassName", "/spec/nodeSelector", "/spec/tolerations", "/spec/overhead", "/metadata/annotations"} {
			allowed = allowed || operation.Path == path
		}
		if !allowed || operation.Operation != "add" {
			t.Errorf("%s %s", operation.Operation, operation.Path)
		}
	}
	patched := string(apply(t, request.Object.Raw, answer.Patches)) // it compares the rest
	for _, field := range []string{`"podFieldOfTomorrow"`, `"containerFieldOfTomorrow":12`, `"restartPolicyRules"`, `"restartPolicy":"Always"`, `"containerFieldOfTomorrow":["left","right"]`} {
		if !strings.Contains(patched, field) {
			t.Errorf("%s is gone: %s", field, patched)
		}
	}
}

// TestMutationOnUpdate: nothing but the creation of a pod is ever patched, not even one
// that would be denied, and a namespace that cannot be read holds up no update.
func TestMutationOnUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	handler, validator := webhook.NewHandler(b.options(t)), webhook.NewPodValidator(b.options(t))
	for _, name := range []string{"review-job-finalizer", "review-resize", "review-trust-relabel"} {
		request := request(t, shape(t, name), Untrusted)
		request.Namespace = "no-such-namespace"
		for endpoint, answer := range map[string]bool{
			"mutating":   untouched(handler.Handle(t.Context(), request).AdmissionResponse, len(handler.Handle(t.Context(), request).Patches)),
			"validating": untouched(validator.Handle(t.Context(), request).AdmissionResponse, 0),
		} {
			if !answer {
				t.Errorf("%s: the %s endpoint does not let it through", name, endpoint)
			}
		}
	}
	if b.lookups.Load() > 0 {
		t.Error("a namespace was looked up for an update")
	}
}

func untouched(response admissionv1.AdmissionResponse, patches int) bool {
	return response.Allowed && patches == 0 && len(response.Patch) == 0
}

// TestNamespaceOfTheRequest: trust is that of the request's namespace, whatever the
// object claims, and no name is needed.
func TestNamespaceOfTheRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, edit := range map[string]func(metadata map[string]any){
		"none":    func(map[string]any) {},
		"another": func(metadata map[string]any) { metadata["namespace"] = Trusted },
	} {
		request := request(t, shape(t, "review-job-pod"), Untrusted)
		var object map[string]any
		if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
			t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		edit(metadata)
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		request.Object.Raw = raw
		answer := webhook.NewHandler(b.options(t)).Handle(t.Context(), request)
		if got := answer.AuditAnnotations["runtime-class"]; !answer.Allowed || got != "gvisor" {
			t.Errorf("namespace in the object: %s: class %q, want that of the request's namespace", name, got)
		}
		for _, operation := range answer.Patches {
			if strings.HasPrefix(operation.Path, "/metadata/name") || strings.HasPrefix(operation.Path, "/metadata/generateName") {
				t.Errorf("the patch touches %s", operation.Path)
			}
		}
	}
}
