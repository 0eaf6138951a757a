package catalog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func fullClass(name string) *nodev1.RuntimeClass {
	return class(name, selecting("sandbox"), tolerating(corev1.Toleration{Key: "sandbox", Operator: corev1.TolerationOpExists}),
		func(c *nodev1.RuntimeClass) {
			c.Labels = map[string]string{LabelHostDevices: "withheld"}
			c.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("130Mi"), "example.com/token": resource.MustParse("1"),
			}}
		})
}

func TestBuildCopiesWhatAClassSays(t *testing.T) {
	t.Parallel()
	got := classOf(fullClass("c"), node("n"))
	want := &RuntimeClass{
		Name: "c", Handler: "runsc", Family: "gvisor", Isolation: UserSpaceKernel,
		Overhead: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("130Mi"), "example.com/token": resource.MustParse("1"),
		},
		NodeSelector:        map[string]string{"pool": "sandbox"},
		Tolerations:         []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}},
		HostDevicesWithheld: true, PoolReady: true, Everywhere: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAPlainClassHasEmptyPlacement: policies iterate over selector and tolerations
// without asking whether there are any.
func TestAPlainClassHasEmptyPlacement(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Build([]*nodev1.RuntimeClass{class("c")}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodeSelector":{}`, `"tolerations":[]`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("lacks %s: %s", want, raw)
		}
	}
	if raw, err := json.Marshal(Build(nil, nil)); err != nil || string(raw) != `{"runtimeClasses":[]}` {
		t.Errorf("an empty catalog is %s, %v", raw, err)
	}
}

func TestHostDevicesAreWithheldByOneValueOnly(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"withheld": true, "Withheld": false, "true": false, "": false} {
		c := class("c")
		c.Labels = map[string]string{LabelHostDevices: value}
		if got := classOf(c).HostDevicesWithheld; got != want {
			t.Errorf("%s=%q: %t, want %t", LabelHostDevices, value, got, want)
		}
	}
}

func TestRuntimeClassLooksUpByName(t *testing.T) {
	t.Parallel()
	c := Build([]*nodev1.RuntimeClass{class("b"), class("a"), class("c")}, nil)
	var names []string
	for i := range c.RuntimeClasses {
		rc := &c.RuntimeClasses[i]
		names = append(names, rc.Name)
		if c.RuntimeClass(rc.Name) != rc {
			t.Errorf("RuntimeClass(%q) is another one", rc.Name)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("not sorted by name: %s", diff)
	}
	for _, name := range []string{"", "d", "A"} {
		if got := c.RuntimeClass(name); got != nil {
			t.Errorf("RuntimeClass(%q) = %v, want nil", name, got)
		}
	}
}

func TestRevisionChangesWithWhatADecisionReads(t *testing.T) {
	t.Parallel()
	classes := func(edits ...func(*nodev1.RuntimeClass)) []*nodev1.RuntimeClass {
		return []*nodev1.RuntimeClass{class("a", edits...), class("b", selecting("sandbox"))}
	}
	base := Build(classes(), []*corev1.Node{node("n")}).Revision()
	heartbeat := func(n *corev1.Node) {
		n.ResourceVersion = "2"
		n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(time.Unix(1e9, 0))
		n.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Unix(1e9, 0))
		n.Status.Conditions[0].Message = "kubelet has sufficient memory"
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"i"}}}
	}
	tests := map[string]struct {
		catalog *Catalog
		changes bool
	}{
		"the same again":              {Build(classes(), []*corev1.Node{node("n")}), false},
		"a heartbeat":                 {Build(classes(), []*corev1.Node{node("n", heartbeat)}), false},
		"a second ready node":         {Build(classes(), []*corev1.Node{node("n"), node("o")}), false},
		"a second ready node, first":  {Build(classes(), []*corev1.Node{node("o"), node("n")}), false},
		"another name of the node":    {Build(classes(), []*corev1.Node{node("z")}), false},
		"the other order of classes":  {Build([]*nodev1.RuntimeClass{classes()[1], classes()[0]}, []*corev1.Node{node("n")}), false},
		"a second node, not ready":    {Build(classes(), []*corev1.Node{node("n"), node("o", readiness(corev1.ConditionFalse))}), false},
		"a label that nobody reads":   {Build(classes(), []*corev1.Node{node("n", withLabel("zone", "x"))}), false},
		"the only node is not ready":  {Build(classes(), []*corev1.Node{node("n", readiness(corev1.ConditionFalse))}), true},
		"the only node is cordoned":   {Build(classes(), []*corev1.Node{node("n", cordoned)}), true},
		"the only node is gone":       {Build(classes(), nil), true},
		"a second node that lacks it": {Build(classes(), []*corev1.Node{node("n"), node("o", offering("crun"))}), true},
		"a class is gone":             {Build(classes()[:1], []*corev1.Node{node("n")}), true},
		"a handler":                   {Build(classes(func(c *nodev1.RuntimeClass) { c.Handler = "runsc-kvm" }), []*corev1.Node{node("n", offering("runsc", "runsc-kvm"))}), true},
		"an overhead":                 {Build(classes(func(c *nodev1.RuntimeClass) { c.Overhead = fullClass("x").Overhead }), []*corev1.Node{node("n")}), true},
		"a toleration":                {Build(classes(tolerating(corev1.Toleration{Operator: "Exists"})), []*corev1.Node{node("n")}), true},
		"an isolation label":          {Build(classes(func(c *nodev1.RuntimeClass) { c.Labels = map[string]string{LabelIsolation: "host-kernel"} }), []*corev1.Node{node("n")}), true},
		"an isolation label ignored":  {Build(classes(func(c *nodev1.RuntimeClass) { c.Labels = map[string]string{LabelIsolation: "strong"} }), []*corev1.Node{node("n")}), false},
		"an annotation of a class":    {Build(classes(func(c *nodev1.RuntimeClass) { c.Annotations = map[string]string{"a": "b"} }), []*corev1.Node{node("n")}), false},
		"host devices withheld":       {Build(classes(func(c *nodev1.RuntimeClass) { c.Labels = map[string]string{LabelHostDevices: "withheld"} }), []*corev1.Node{node("n")}), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if changed := test.catalog.Revision() != base; changed != test.changes {
				t.Errorf("revision changed: %t, want %t", changed, test.changes)
			}
		})
	}
}

func TestBuildLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	classes := []*nodev1.RuntimeClass{fullClass("b"), fullClass("a")}
	nodes := []*corev1.Node{node("z", tainted(corev1.TaintEffectNoSchedule)), node("y")}
	wantClasses := []*nodev1.RuntimeClass{classes[0].DeepCopy(), classes[1].DeepCopy()}
	wantNodes := []*corev1.Node{nodes[0].DeepCopy(), nodes[1].DeepCopy()}

	c := Build(classes, nodes)
	// Whoever holds the catalog may not reach the objects through it: they belong to
	// an informer's cache.
	rc := c.RuntimeClass("a")
	rc.NodeSelector["pool"] = "changed"
	rc.Tolerations[0].Key = "changed"
	rc.Overhead[corev1.ResourceCPU] = resource.MustParse("9")

	if diff := cmp.Diff(wantClasses, classes); diff != "" {
		t.Errorf("classes were modified: %s", diff)
	}
	if diff := cmp.Diff(wantNodes, nodes); diff != "" {
		t.Errorf("nodes were modified: %s", diff)
	}
}
