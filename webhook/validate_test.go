package webhook

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

func newValidator(t testing.TB, edits ...func(*Options)) *PodValidator {
	t.Helper()
	handler, _ := newHandler(t, edits...)
	return NewPodValidator(handler.Options)
}

// routed is what the mutating endpoint leaves of a plain pod in an untrusted namespace.
const routed = `"runtimeClassName": "gvisor", "nodeSelector": {"example.com/pool": "gvisor"}`

// TestFinalPods: a pod that is as it was routed passes; one that another webhook
// changed is refused, and what differs is named.
func TestFinalPods(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		namespace, spec string
		denied          []string // parts of the message; nil for admitted
	}{
		"as routed":                  {"untrusted", routed, nil},
		"another sandbox asked for":  {"untrusted", `"runtimeClassName": "kata-qemu", "nodeSelector": {"example.com/pool": "kata-qemu"}`, nil},
		"crun put in":                {"untrusted", `"runtimeClassName": "crun"`, []string{`changed after it was routed`, `spec.runtimeClassName is "crun", and this pod gets "gvisor"`}},
		"class taken out":            {"untrusted", ``, []string{`spec.runtimeClassName is "", and this pod gets "gvisor"`}},
		"selector emptied":           {"untrusted", `"runtimeClassName": "gvisor"`, []string{`spec.nodeSelector lacks example.com/pool=gvisor of runtime class gvisor`}},
		"host network put in":        {"untrusted", routed + `, "hostNetwork": true`, []string{`spec.hostNetwork`}},
		"trusted without a class":    {"trusted", ``, nil},
		"trusted with a class":       {"trusted", `"runtimeClassName": "nvidia"`, nil},
		"not enforced":               {"audited", `"hostNetwork": true`, nil},
		"not labelled":               {"unlabelled", `"hostNetwork": true`, nil},
		"class in disguise":          {"untrusted", `"runtimeClassName": "gvisor-like"`, []string{`this pod gets "gvisor"`}},
		"class without a selector":   {"untrusted", `"runtimeClassName": "nvidia"`, []string{`this pod gets "gvisor"`}},
		"trusted pod, host's things": {"trusted", `"hostNetwork": true, "hostPID": true`, nil},
	}
	validator := newValidator(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := validator.Handle(t.Context(), create(test.namespace, test.spec))
			if got.Allowed != (test.denied == nil) || len(got.Patches) > 0 || len(got.Warnings) > 0 {
				t.Fatalf("got %+v", got)
			}
			for _, part := range test.denied {
				if got.Result.Code != http.StatusForbidden || !strings.Contains(got.Result.Message, part) {
					t.Errorf("%d %s lacks %q", got.Result.Code, got.Result.Message, part)
				}
			}
		})
	}
}

// TestEndpointsAgree: what the mutating endpoint leaves, the validating one admits, for
// every fixture that is not denied.
func TestEndpointsAgree(t *testing.T) {
	t.Parallel()
	router, namespaces := newRouter(t)
	for name, raw := range fixturePods(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := policies.Input{Namespace: *namespaces[raw.namespace], Pod: asPod(t, raw.pod)}
			route, err := router.Route(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			in.Pod = asPod(t, merged(t, router, apply(t, raw.pod, route.Patch)))
			judged, err := router.Judge(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if (judged.Action == policies.Deny) != (route.Action == policies.Deny) && route.Mode == policies.Enforce {
				t.Errorf("routed: %s, judged: %s %v", route.Action, judged.Action, judged.Reasons)
			}
		})
	}
}

func TestEphemeralContainers(t *testing.T) {
	t.Parallel()
	const plain = `{"name": "debugger", "image": "i"}`
	const privileged = `{"name": "debugger", "image": "i", "securityContext": {"privileged": true}}`
	with := func(spec, containers string) runtime.RawExtension {
		if spec != "" {
			spec += ", "
		}
		return runtime.RawExtension{Raw: pod(spec + `"ephemeralContainers": [` + containers + `]`)}
	}
	tests := map[string]struct {
		namespace, spec, old, added string
		denied                      bool
	}{
		"plain":                              {"untrusted", routed, "", plain, false},
		"privileged":                         {"untrusted", routed, "", privileged, true},
		"privileged, trusted":                {"trusted", "", "", privileged, false},
		"privileged, not enforced":           {"audited", "", "", privileged, false},
		"one that is there already":          {"untrusted", routed, privileged, privileged, false},
		"beside one that is there already":   {"untrusted", routed, privileged, privileged + "," + strings.Replace(plain, "debugger", "second", 1), false},
		"namespace relabelled":               {"untrusted", "", "", plain, false},
		"namespace relabelled, host network": {"untrusted", `"hostNetwork": true`, "", plain, false},
		"a window to the host":               {"untrusted", routed + `, "volumes": [{"name": "h", "hostPath": {"path": "/srv"}}]`, "", strings.Replace(plain, "}", `, "volumeMounts": [{"name": "h", "mountPath": "/h"}]}`, 1), true},
		"a window that it does not use":      {"untrusted", routed + `, "volumes": [{"name": "h", "hostPath": {"path": "/srv"}}]`, "", plain, false},
		"namespace relabelled, privileged":   {"untrusted", `"runtimeClassName": "crun"`, "", privileged, true},
	}
	validator := newValidator(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := create(test.namespace, "")
			request.Operation, request.SubResource = admissionv1.Update, "ephemeralcontainers"
			request.OldObject, request.Object = with(test.spec, test.old), with(test.spec, test.added)
			got := validator.Handle(t.Context(), request)
			if got.Allowed == test.denied {
				t.Errorf("got %+v", got)
			}
			if test.denied && !strings.Contains(got.Result.Message, "spec.ephemeralContainers[0].securityContext.privileged") && !strings.Contains(got.Result.Message, "spec.volumes[0].hostPath") {
				t.Errorf("the field is not named: %s", got.Result.Message)
			}
		})
	}
}

func TestEphemeralContainersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	request := create("untrusted", "")
	request.Operation, request.SubResource = admissionv1.Update, "ephemeralcontainers"
	request.OldObject = runtime.RawExtension{Raw: []byte(`{"spec": 1}`)}
	got := newValidator(t).Handle(t.Context(), request)
	if got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("got %+v", got)
	}
}

// TestRelabelledPods: a warning, and no look-up.
func TestRelabelledPods(t *testing.T) {
	t.Parallel()
	validator := newValidator(t, func(o *Options) {
		o.Namespaces = lookup(func(context.Context, string) (*catalog.Namespace, error) {
			t.Error("the namespace was looked up")
			return nil, errors.New("no")
		})
	})
	labelled := func(labels string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(strings.Replace(string(pod("")), `"name": "p"`, `"name": "p", "labels": {`+labels+`}`, 1))}
	}
	request := create("untrusted", "")
	request.Operation = admissionv1.Update
	request.OldObject, request.Object = labelled(`"runtimeclass-router.io/trust": "untrusted"`), labelled(`"runtimeclass-router.io/trust": "trusted"`)
	got := validator.Handle(t.Context(), request)
	if !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], `"untrusted" to "trusted": the runtime of a running pod does not follow`) {
		t.Errorf("got %+v", got)
	}
	request.Object = labelled(`"runtimeclass-router.io/trust": "untrusted", "other": "x"`)
	if got := validator.Handle(t.Context(), request); !got.Allowed || len(got.Warnings) > 0 {
		t.Errorf("got %+v", got)
	}
	request.Object = runtime.RawExtension{Raw: []byte("{")}
	if got := validator.Handle(t.Context(), request); !got.Allowed {
		t.Error("an update was held up")
	}
}

// TestResizedPods: a warning under a sandbox, never a refusal.
func TestResizedPods(t *testing.T) {
	t.Parallel()
	validator := newValidator(t)
	for class, want := range map[string]string{
		"gvisor": "may not reach the containers", "kata-qemu": "may not reach the containers",
		"kata-fc": "cannot be resized in place", "crun": "", "": "", "unknown": "",
	} {
		request := create("untrusted", `"runtimeClassName": "`+class+`"`)
		request.Operation, request.SubResource = admissionv1.Update, "resize"
		got := validator.Handle(t.Context(), request)
		if !got.Allowed || len(got.Patches) > 0 || !strings.Contains(strings.Join(got.Warnings, " "), want) || (want == "") != (len(got.Warnings) == 0) {
			t.Errorf("%q: %+v", class, got)
		}
		request.Object.Raw = []byte("{")
		if got := validator.Handle(t.Context(), request); !got.Allowed || len(got.Warnings) > 0 {
			t.Errorf("%q, unreadable: %+v", class, got)
		}
	}
}

// TestMirrorPods: the annotation is believed only of a node.
func TestMirrorPods(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	validator := NewPodValidator(handler.Options)
	mirrored := create("untrusted", `"hostNetwork": true`)
	mirrored.Object.Raw = []byte(strings.Replace(string(mirrored.Object.Raw), `"metadata": {`, `"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}, `, 1))
	node := mirrored
	node.UserInfo = authenticationv1.UserInfo{Username: "system:node:n", Groups: []string{"system:nodes"}}
	for name, handle := range map[string]func(context.Context, admission.Request) admission.Response{"mutate": handler.Handle, "validate": validator.Handle} {
		if got := handle(t.Context(), node); !got.Allowed || len(got.Patches) > 0 {
			t.Errorf("%s: a node's mirror pod: %+v", name, got)
		}
		if got := handle(t.Context(), mirrored); got.Allowed {
			t.Errorf("%s: a tenant's mirror pod was let in", name)
		}
		other := node
		other.Object.Raw = create("untrusted", `"hostNetwork": true`).Object.Raw
		if got := handle(t.Context(), other); got.Allowed {
			t.Errorf("%s: a node's other pod was let in", name)
		}
	}
}

func TestWorkloadAdvice(t *testing.T) {
	t.Parallel()
	deployment := func(spec string) []byte {
		return []byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1, "template": {"spec": {` + spec + `"containers": [{"name": "c", "image": "i"}]}}}}`)
	}
	tests := map[string]struct {
		namespace, spec string
		want            []string // parts of warnings; none for silence
	}{
		"routed":            {"untrusted", "", []string{`the pods of this Deployment will run under runtime class "gvisor"`}},
		"denied":            {"untrusted", `"hostPID": true, `, []string{"the pods of this Deployment will be denied", "spec.hostPID"}},
		"replaced":          {"untrusted", `"runtimeClassName": "crun", `, []string{`runtime class "gvisor"`, "runtime class crun is replaced"}},
		"kept":              {"untrusted", `"runtimeClassName": "gvisor", `, nil},
		"trusted":           {"trusted", `"hostPID": true, `, nil},
		"warned":            {"unlabelled", `"hostPID": true, `, []string{"in mode enforce the pods of this Deployment will be denied"}},
		"audited":           {"audited", `"hostPID": true, `, nil},
		"unknown namespace": {"nowhere", `"hostPID": true, `, nil},
	}
	handler, _ := newHandler(t)
	advisor := NewWorkloadAdvisor(handler.Options)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := create(test.namespace, "")
			request.Kind.Kind, request.Object.Raw = "Deployment", deployment(test.spec)
			got := advisor.Handle(t.Context(), request)
			if !got.Allowed {
				t.Fatal("an advisor denied")
			}
			all := strings.Join(got.Warnings, "\n")
			for _, part := range test.want {
				if !strings.Contains(all, part) {
					t.Errorf("lacks %q in %q", part, all)
				}
			}
			if len(test.want) == 0 && all != "" {
				t.Errorf("said %q", all)
			}
			// Its replicas are nobody's business here.
			request.Operation, request.OldObject.Raw = admissionv1.Update, []byte(strings.Replace(string(request.Object.Raw), `"replicas": 1`, `"replicas": 2`, 1))
			if again := advisor.Handle(t.Context(), request); !again.Allowed || len(again.Warnings) > 0 {
				t.Errorf("an update of the replicas: %+v", again)
			}
			request.OldObject.Raw = deployment(`"priority": 1, `)
			if changed := advisor.Handle(t.Context(), request); !cmp.Equal(changed.Warnings, got.Warnings) {
				t.Errorf("an update of the template: %v", changed.Warnings)
			}
		})
	}
	for name, raw := range map[string]string{"no template": `{"kind": "Deployment", "spec": {}}`, "no object": `[]`} {
		request := create("untrusted", "")
		request.Kind.Kind, request.Object.Raw = "Deployment", []byte(raw)
		if got := advisor.Handle(t.Context(), request); !got.Allowed || len(got.Warnings) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// merged puts the selector of the pod's class into the pod, as the API server does.
func merged(t *testing.T, router *Router, raw []byte) []byte {
	t.Helper()
	snapshot, err := router.Engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decodePod(asPod(t, raw))
	if err != nil {
		t.Fatal(err)
	}
	class := snapshot.Catalog().RuntimeClass(decoded.RuntimeClassName)
	if class == nil {
		return raw
	}
	return apply(t, raw, patchMap("/spec/nodeSelector", decoded.NodeSelector, union(decoded.NodeSelector, class.NodeSelector)))
}

func union(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
