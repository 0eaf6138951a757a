package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSandboxThatCannotRunAnInjectedContainer: the pod is routed, another webhook adds a
// container, and the answer to the second call is another one.
func TestSandboxThatCannotRunAnInjectedContainer(t *testing.T) {
	t.Parallel()
	injected := shape(t, "istio-native-sidecar").Raw
	var object map[string]any
	if err := json.Unmarshal(injected, &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	containers := spec["initContainers"]
	delete(spec, "initContainers")
	app, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		b    *bench
		want string // the class after the injection; empty for a denial
	}{
		"with Kata":    {newBench(t), "kata"},
		"without Kata": {newBenchOver(t, onlyClasses(t, []*corev1.Node{node("a", "runsc")}, "gvisor"), ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := test.b.route(t, Untrusted, app)
			if first.RuntimeClassName != "gvisor" {
				t.Fatalf("before the injection: %+v", first)
			}
			routed := apply(t, app, first.Patch)
			if routed, err = setSpec(routed, map[string]any{"initContainers": containers}); err != nil {
				t.Fatal(err)
			}
			outcome, _ := test.b.admit(t, Untrusted, routed)
			if outcome.Denied != (test.want == "") || !outcome.Denied && outcome.Class != test.want {
				t.Fatalf("after the injection: %s: %s", &outcome, outcome.Message)
			}
			if hint := "istio-cni or ambient"; outcome.Denied && !strings.Contains(outcome.Message, hint) {
				t.Errorf("the denial does not mention %s: %s", hint, outcome.Message)
			}
		})
	}
}

// TestImpossibleCombinationsAreDenied: nothing in Kubernetes refuses these before the
// kubelet does, or before they have harmed the host.
func TestImpossibleCombinationsAreDenied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		for _, class := range []string{"", "gvisor", "kata", "kata-fc"} {
			spec := `"` + field + `": true`
			if class != "" {
				spec += `, "runtimeClassName": "` + class + `"`
			}
			outcome, _ := b.admit(t, Untrusted, pod(spec))
			if !outcome.Denied || !strings.Contains(outcome.Message, "spec."+field) {
				t.Errorf("%s with class %q: %s: %s; want a denial that names the field", field, class, &outcome, outcome.Message)
			}
		}
	}
}

// TestFailsAtAdmissionAndNotAtTheKubelet: what a kubelet refuses is made again at once by
// its owner, what admission refuses backs off.
func TestFailsAtAdmissionAndNotAtTheKubelet(t *testing.T) {
	t.Parallel()
	unsafe := pod(`"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]}`)
	shipped := newBench(t)
	outcome, _ := shipped.admit(t, Untrusted, unsafe)
	if !outcome.Denied || !strings.Contains(outcome.Message, "net.core.somaxconn") || !strings.Contains(outcome.Message, "allowedUnsafeSysctls") {
		t.Errorf("%s: %s; want a denial that names the sysctl and the setting", &outcome, outcome.Message)
	}
	configured := newBenchOver(t, shipped.catalog, `{"allowedUnsafeSysctls": ["net.core.*"]}`)
	if outcome, _ := configured.admit(t, Untrusted, unsafe); outcome.Class != "kata" {
		t.Errorf("%s: %s; the kubelets are configured for it, want a Kata", &outcome, outcome.Message)
	}
	for name, test := range map[string]struct{ spec, container string }{
		"user namespace":             {spec: `"hostUsers": false, `},
		"node outside of the pool":   {spec: `"nodeName": "general-a", `},
		"claim of a device":          {spec: `"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}], `},
		"device of the host":         {container: `, "resources": {"limits": {"smarter-devices/fuse": "1"}}`},
		"recursive read-only mounts": {spec: `"volumes": [{"name": "v", "emptyDir": {}}], `, container: `, "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true, "recursiveReadOnly": "Enabled"}]`},
	} {
		raw := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {` + test.spec + `"containers": [{"name": "main", "image": "registry.example.com/app:1"` + test.container + `}]}}`
		if outcome, _ := shipped.admit(t, Untrusted, json.RawMessage(raw)); !outcome.Denied {
			t.Errorf("%s: %s, want it denied", name, &outcome)
		}
	}
}

// TestRuntimeAnnotationsOpenNoSandbox: what configures the runtime may open it, a debug
// console for one, and the API server takes any annotation.
func TestRuntimeAnnotationsOpenNoSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	outcome, _ := b.admit(t, Untrusted, shape(t, "peer-pod").Raw)
	if key := "io.katacontainers.config.hypervisor.machine_type"; !outcome.Denied || !strings.Contains(outcome.Message, key) {
		t.Errorf("%s: %s; want a denial that names %s", &outcome, outcome.Message, key)
	}
	configured := newBenchOver(t, b.catalog, `{"allowedRuntimeAnnotations": ["io.katacontainers.config.hypervisor.machine_type"]}`)
	if outcome, _ := configured.admit(t, Untrusted, shape(t, "peer-pod").Raw); outcome.Class != "kata-remote" || outcome.Patched {
		t.Errorf("%s: %s; the key is allowed, want the pod kept", &outcome, outcome.Message)
	}
}
