package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// pod is a pod with one container and, beside it, the fields of a spec.
func pod(spec string) json.RawMessage {
	if spec != "" {
		spec += ", "
	}
	return json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {` + spec +
		`"containers": [{"name": "main", "image": "registry.example.com/app:1"}]}}`)
}

// onlyClasses is the catalog of the shapes' cluster with no class but those, and no node
// but those.
func onlyClasses(t *testing.T, nodes []*corev1.Node, names ...string) *catalog.Catalog {
	t.Helper()
	cluster, err := Cluster()
	if err != nil {
		t.Fatal(err)
	}
	var classes []*nodev1.RuntimeClass
	for i := range cluster.Documents {
		for _, name := range names {
			if class, ok := cluster.Documents[i].Object.(*nodev1.RuntimeClass); ok && class.Name == name {
				classes = append(classes, class)
			}
		}
	}
	if len(classes) != len(names) {
		t.Fatalf("the cluster has %d of the classes %v", len(classes), names)
	}
	return catalog.Build(classes, nodes)
}

// node is a ready node that offers some handlers.
func node(name string, handlers ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, handler := range append([]string{""}, handlers...) {
		n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: handler})
	}
	return n
}

// TestRoutingToAPlaceThatCannotExist: what can be known to contradict is denied with both
// sides named; what only today's nodes cannot meet is no reason to deny.
func TestRoutingToAPlaceThatCannotExist(t *testing.T) {
	t.Parallel()
	const affinity = `"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [%s]}}}`
	term := func(value string) string {
		return fmt.Sprintf(`{"matchExpressions": [{"key": "example.com/pool", "operator": "In", "values": [%q]}]}`, value)
	}
	for name, test := range map[string]struct {
		spec string
		want []string // parts of the denial; nil for a pod that is routed
	}{
		"node name":                 {`"nodeName": "general-a"`, []string{"spec.nodeName", `node "general-a" is not in the pool of the class`}},
		"node name of the pool":     {`"nodeName": "gvisor-a"`, nil},
		"selector":                  {`"nodeSelector": {"example.com/pool": "general"}`, []string{"spec.nodeSelector[example.com/pool]", `"general" contradicts "sandbox"`}},
		"selector of the pool":      {`"nodeSelector": {"example.com/pool": "sandbox"}`, nil},
		"affinity in every term":    {fmt.Sprintf(affinity, term("general")+","+term("other")), []string{"spec.affinity.nodeAffinity", "example.com/pool=sandbox"}},
		"affinity in one of two":    {fmt.Sprintf(affinity, term("general")+","+term("sandbox")), nil},
		"another key, not met now":  {`"nodeSelector": {"disktype": "ssd"}`, nil},
		"a label of control planes": {`"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPool := node("gvisor-a", "runsc")
			inPool.Labels["example.com/pool"] = "sandbox"
			b := newBenchOver(t, onlyClasses(t, []*corev1.Node{inPool, node("general-a", "crun")}, "crun", "gvisor-pool"), "")
			outcome, _ := b.admit(t, Untrusted, pod(test.spec))
			if outcome.Denied != (test.want != nil) || !outcome.Denied && outcome.Class != "gvisor-pool" {
				t.Fatalf("%s: %s", &outcome, outcome.Message)
			}
			for _, part := range test.want {
				if !strings.Contains(outcome.Message, part) {
					t.Errorf("%q is not said: %s", part, outcome.Message)
				}
			}
		})
	}
}

// TestPlaceThatNoNodeIsToday: a selector that no node of the pool meets costs the pod a
// wait, of which it is told.
func TestPlaceThatNoNodeIsToday(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const selector = `"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}, "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]`
	outcome, route := b.admit(t, Untrusted, pod(selector))
	if outcome.Denied {
		t.Fatalf("denied for what may change: %s", outcome.Message)
	}
	if !strings.Contains(strings.Join(route.Warnings, "\n"), "node-role.kubernetes.io/control-plane") {
		t.Errorf("class %s, and no warning says that no node has both labels: %q", route.RuntimeClassName, route.Warnings)
	}
}

// TestDaemonSetThatCannotSeeTheSelector: its controller would make pods for all other
// nodes in a loop. It gets the line to add, or is routed once it has it.
func TestDaemonSetThatCannotSeeTheSelector(t *testing.T) {
	t.Parallel()
	const shape = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "agent-", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true}]},
		"spec": {%s "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gvisor-a"]}]}]}}},
		"containers": [{"name": "main", "image": "registry.example.com/app:1"}]}}`
	b := newBench(t)
	denied, _ := b.admit(t, Untrusted, json.RawMessage(fmt.Sprintf(shape, "")))
	if want := "add nodeSelector example.com/gvisor: true to the DaemonSet's template"; !denied.Denied || !strings.Contains(denied.Message, want) {
		t.Errorf("%s: %s; want a denial with the hint %q", &denied, denied.Message, want)
	}
	routed, _ := b.admit(t, Untrusted, json.RawMessage(fmt.Sprintf(shape, `"nodeSelector": {"example.com/gvisor": "true"},`)))
	if routed.Class != "gvisor" {
		t.Errorf("%s: %s; the template selects the pool, want gvisor", &routed, routed.Message)
	}
}

// TestClassThatSomeNodesLack: a class that half of the nodes cannot run is not forced
// upon a trusted pod, and one that a pod asks for is not taken from it.
func TestClassThatSomeNodesLack(t *testing.T) {
	t.Parallel()
	everywhere := newBenchOver(t, onlyClasses(t, []*corev1.Node{node("a", "crun"), node("b", "crun")}, "crun", "nvidia"), "")
	half := newBenchOver(t, onlyClasses(t, []*corev1.Node{node("a", "crun", "nvidia"), node("b")}, "crun", "nvidia"), "")
	for name, test := range map[string]struct {
		b    *bench
		spec string
		want string
	}{
		"all have it":       {everywhere, "", "crun"},
		"one has not":       {half, "", ""},
		"asked for":         {half, `"runtimeClassName": "crun"`, "crun"},
		"nvidia stays":      {half, `"runtimeClassName": "nvidia"`, "nvidia"},
		"nvidia, all crun":  {everywhere, `"runtimeClassName": "nvidia"`, "nvidia"},
		"bound to a has-it": {half, `"nodeName": "a"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if outcome, route := test.b.admit(t, Trusted, pod(test.spec)); outcome.Denied || outcome.Class != test.want {
				t.Errorf("%s, want %q: %s %v", &outcome, test.want, outcome.Message, route.Reasons)
			}
		})
	}
}

// TestScaleFromZero: no node of any pool exists, and pods are routed all the same; they
// are told that they wait, unless the pool is labelled autoscaled.
func TestScaleFromZero(t *testing.T) {
	t.Parallel()
	cluster, err := Cluster()
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{"empty": nil, "autoscaled": {catalog.LabelAvailability: "autoscaled"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var classes []*nodev1.RuntimeClass
			for i := range cluster.Documents {
				if class, ok := cluster.Documents[i].Object.(*nodev1.RuntimeClass); ok && class.Name == "gvisor" {
					class = class.DeepCopy()
					class.Labels = labels
					classes = append(classes, class)
				}
			}
			b := newBenchOver(t, catalog.Build(classes, nil), "")
			outcome, route := b.admit(t, Untrusted, shape(t, "karpenter-batch").Raw)
			if outcome.Class != "gvisor" {
				t.Fatalf("%s: %s", &outcome, outcome.Message)
			}
			if waits := len(route.Warnings) > 0; waits != (labels == nil) {
				t.Errorf("warnings %q", route.Warnings)
			}
		})
	}
}
