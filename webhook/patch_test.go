package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func resources(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func exists(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
}

// gvisorClass and kataClass differ in one key's value, share a toleration and have
// one each of their own.
func gvisorClass() *catalog.RuntimeClass {
	return &catalog.RuntimeClass{
		Name: "gvisor", Isolation: catalog.UserSpaceKernel, Overhead: resources("50m"),
		NodeSelector: map[string]string{"pool": "gvisor", "only/gvisor": "1"}, Tolerations: []corev1.Toleration{exists("shared"), exists("g")},
	}
}

func kataClass() *catalog.RuntimeClass {
	return &catalog.RuntimeClass{
		Name: "kata", Isolation: catalog.GuestKernel, Overhead: resources("250m"),
		NodeSelector: map[string]string{"pool": "kata"}, Tolerations: []corev1.Toleration{exists("shared"), exists("k")},
	}
}

func plainClass() *catalog.RuntimeClass { return &catalog.RuntimeClass{Name: "crun"} }

func TestPatchOperations(t *testing.T) {
	t.Parallel()
	const merged = `"runtimeClassName": "gvisor", "nodeSelector": {"pool": "gvisor", "only/gvisor": "1"},
		"tolerations": [{"key": "shared", "operator": "Exists"}, {"key": "g", "operator": "Exists"}], "overhead": {"cpu": "50m"}`
	tests := map[string]struct {
		spec            string
		from, to        *catalog.RuntimeClass
		extraSelector   map[string]string
		extraToleration []corev1.Toleration
		want            string
	}{
		"a plain pod gets all four fields": {"", nil, kataClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "kata"},
			{"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "kata"}},
			{"op": "add", "path": "/spec/tolerations", "value": [{"key": "shared", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "250m"}}]`},
		"null is absent": {`"runtimeClassName": null, "nodeSelector": null, "tolerations": null, "overhead": null`, nil, kataClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "kata"},
			{"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "kata"}},
			{"op": "add", "path": "/spec/tolerations", "value": [{"key": "shared", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "250m"}}]`},
		"null stays for a class that wants nothing": {`"nodeSelector": null, "tolerations": null, "overhead": null`, nil, plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"}]`},
		"what is empty is filled key by key": {`"nodeSelector": {}, "tolerations": [], "overhead": {}`, nil, kataClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "kata"},
			{"op": "add", "path": "/spec/nodeSelector/pool", "value": "kata"},
			{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "shared", "operator": "Exists"}},
			{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k", "operator": "Exists"}},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "250m"}}]`},
		"an empty overhead is no overhead": {`"overhead": {}`, nil, plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/overhead"}]`},
		"what is right already stays": {merged, gvisorClass(), gvisorClass(), nil, nil, `[]`},
		"right without the merge": {`"runtimeClassName": "gvisor"`, gvisorClass(), gvisorClass(), nil, nil, `[
			{"op": "add", "path": "/spec/nodeSelector", "value": {"only/gvisor": "1", "pool": "gvisor"}},
			{"op": "add", "path": "/spec/tolerations", "value": [{"key": "shared", "operator": "Exists"}, {"key": "g", "operator": "Exists"}]},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "50m"}}]`},
		"a swap takes out what was merged in, and keeps what both want": {merged, gvisorClass(), kataClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "kata"},
			{"op": "remove", "path": "/spec/nodeSelector/only~1gvisor"},
			{"op": "add", "path": "/spec/nodeSelector/pool", "value": "kata"},
			{"op": "remove", "path": "/spec/tolerations/1"},
			{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k", "operator": "Exists"}},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "250m"}}]`},
		"a swap to a class that wants nothing": {merged, gvisorClass(), plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/nodeSelector/only~1gvisor"},
			{"op": "remove", "path": "/spec/nodeSelector/pool"},
			{"op": "remove", "path": "/spec/tolerations/1"},
			{"op": "remove", "path": "/spec/tolerations/0"},
			{"op": "remove", "path": "/spec/overhead"}]`},
		"the class is removed": {merged, gvisorClass(), nil, nil, nil, `[
			{"op": "remove", "path": "/spec/runtimeClassName"},
			{"op": "remove", "path": "/spec/nodeSelector/only~1gvisor"},
			{"op": "remove", "path": "/spec/nodeSelector/pool"},
			{"op": "remove", "path": "/spec/tolerations/1"},
			{"op": "remove", "path": "/spec/tolerations/0"},
			{"op": "remove", "path": "/spec/overhead"}]`},
		"no class to remove": {`"nodeSelector": {"zone": "a"}`, nil, nil, nil, nil, `[]`},
		"a class that the catalog lacks is replaced, its merge unknown": {`"runtimeClassName": "gone", "nodeSelector": {"gone": "1"}, "overhead": {"cpu": "1"}`, nil, plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/overhead"}]`},
		"the pod's own value under a merged key stays": {`"runtimeClassName": "gvisor", "nodeSelector": {"only/gvisor": "2"}`, gvisorClass(), plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"}]`},
		"tolerations are removed from the end": {`"runtimeClassName": "gvisor", "tolerations": [{"key": "shared", "operator": "Exists"}, {"key": "own"}, {"key": "g", "operator": "Exists"}, {"key": "last"}]`,
			gvisorClass(), plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/tolerations/2"},
			{"op": "remove", "path": "/spec/tolerations/0"}]`},
		"duplicates are removed each": {`"runtimeClassName": "gvisor", "tolerations": [{"key": "g", "operator": "Exists"}, {"key": "own"}, {"key": "g", "operator": "Exists"}]`,
			gvisorClass(), plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/tolerations/2"},
			{"op": "remove", "path": "/spec/tolerations/0"}]`},
		"the pod's own duplicates stay": {`"tolerations": [{"key": "k", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]`, nil, kataClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "kata"},
			{"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "kata"}},
			{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "shared", "operator": "Exists"}},
			{"op": "add", "path": "/spec/overhead", "value": {"cpu": "250m"}}]`},
		"a toleration for a time is another one": {`"runtimeClassName": "gvisor", "tolerations": [{"key": "g", "operator": "Exists", "tolerationSeconds": 5}]`,
			gvisorClass(), plainClass(), nil, nil, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"}]`},
		"an equal overhead may be spelt otherwise": {`"runtimeClassName": "kata", "nodeSelector": {"pool": "kata"}, "tolerations": [{"key": "shared", "operator": "Exists"}, {"key": "k", "operator": "Exists"}], "overhead": {"cpu": "0.25"}`,
			kataClass(), kataClass(), nil, nil, `[]`},
		"the policy's placement is added": {`"nodeSelector": {"zone": "a"}`, nil, plainClass(), map[string]string{"zone": "a", "x~y/z": "1"}, []corev1.Toleration{exists("p")}, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "add", "path": "/spec/nodeSelector/x~0y~1z", "value": "1"},
			{"op": "add", "path": "/spec/tolerations", "value": [{"key": "p", "operator": "Exists"}]}]`},
		"the policy keeps what the old class wanted": {merged, gvisorClass(), plainClass(), map[string]string{"pool": "gvisor"}, []corev1.Toleration{exists("g")}, `[
			{"op": "add", "path": "/spec/runtimeClassName", "value": "crun"},
			{"op": "remove", "path": "/spec/nodeSelector/only~1gvisor"},
			{"op": "remove", "path": "/spec/tolerations/0"},
			{"op": "remove", "path": "/spec/overhead"}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := pod(test.spec)
			decoded, err := decodePod(asPod(t, raw))
			if err != nil {
				t.Fatal(err)
			}
			placed, err := place(decoded, test.from, test.to, test.extraSelector, test.extraToleration)
			if err != nil {
				t.Fatal(err)
			}
			ops := patch(decoded, placed)
			if diff := cmp.Diff(parse(t, test.want), parse(t, encode(t, ops))); diff != "" {
				t.Error(diff)
			}
			// And on its own output it does nothing.
			again, err := decodePod(asPod(t, apply(t, raw, ops)))
			if err != nil {
				t.Fatal(err)
			}
			if placed, err = place(again, test.to, test.to, test.extraSelector, test.extraToleration); err != nil {
				t.Fatal(err)
			}
			if ops := patch(again, placed); len(ops) > 0 {
				t.Errorf("a second pass: %v", ops)
			}
		})
	}
}

func TestPatchAnnotations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		annotations string // "" for none
		wanted      map[string]string
		want        string
	}{
		"none wanted, none there": {"", nil, `[]`},
		"none wanted":             {`{"a": "b"}`, nil, `[]`},
		"no map yet":              {"", map[string]string{"r/trust": "x"}, `[{"op": "add", "path": "/metadata/annotations", "value": {"r/trust": "x"}}]`},
		"null is no map":          {"null", map[string]string{"r/trust": "x"}, `[{"op": "add", "path": "/metadata/annotations", "value": {"r/trust": "x"}}]`},
		"an empty map":            {"{}", map[string]string{"r/trust": "x"}, `[{"op": "add", "path": "/metadata/annotations/r~1trust", "value": "x"}]`},
		"others stay":             {`{"a/b~c": "d"}`, map[string]string{"r/trust": "x"}, `[{"op": "add", "path": "/metadata/annotations/r~1trust", "value": "x"}]`},
		"a forged one is replaced": {`{"r/trust": "mine", "r/reason": "y"}`, map[string]string{"r/trust": "x", "r/reason": "y"},
			`[{"op": "add", "path": "/metadata/annotations/r~1trust", "value": "x"}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{}]}}`
			if test.annotations != "" {
				raw = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": ` + test.annotations + `}, "spec": {"containers": [{}]}}`
			}
			decoded, err := decodePod(asPod(t, []byte(raw)))
			if err != nil {
				t.Fatal(err)
			}
			ops := patchAnnotations(decoded, test.wanted, "")
			if diff := cmp.Diff(parse(t, test.want), parse(t, encode(t, ops))); diff != "" {
				t.Error(diff)
			}
			apply(t, []byte(raw), ops)
		})
	}
}

func TestEscapeIsAJSONPointerToken(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "", "a": "a", "a/b": "a~1b", "a~b": "a~0b", "~1": "~01", "/~/": "~1~0~1"} {
		if got := escape(key); got != want {
			t.Errorf("escape(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestPlaceLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	from, to := gvisorClass(), kataClass()
	decoded, err := decodePod(asPod(t, pod(`"nodeSelector": {"pool": "gvisor", "zone": "a"}, "tolerations": [{"key": "g", "operator": "Exists"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	extra := append(make([]corev1.Toleration, 0, 8), exists("p"))
	if _, err := place(decoded, from, to, map[string]string{"zone": "a"}, extra); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gvisorClass(), from) + cmp.Diff(kataClass(), to); diff != "" {
		t.Errorf("a class of the catalog was modified: %s", diff)
	}
	if len(decoded.NodeSelector) != 2 || len(decoded.Tolerations) != 1 || len(extra) != 1 {
		t.Errorf("the pod was modified: %+v", decoded)
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// parse makes JSON comparable; null is an empty list of operations.
func parse(t *testing.T, raw string) []any {
	t.Helper()
	list := []any{}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		t.Fatal(err)
	}
	if list == nil {
		return []any{}
	}
	return list
}
