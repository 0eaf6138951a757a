package informers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
		Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
}

func fullNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: meta("n"),
		Spec: corev1.NodeSpec{
			PodCIDR: "10.0.0.0/24", ProviderID: "p", Unschedulable: true, Taints: []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Capacity:        corev1.ResourceList{"cpu": resource.MustParse("4")},
			Addresses:       []corev1.NodeAddress{{Address: "10.0.0.1"}},
			Images:          []corev1.ContainerImage{{Names: []string{"i"}, SizeBytes: 1}},
			NodeInfo:        corev1.NodeSystemInfo{KernelVersion: "7"},
			RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: "runsc"}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "r", Message: "m", LastHeartbeatTime: metav1.NewTime(time.Unix(1e9, 0)), LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))},
			},
		},
	}
}

func stripped(t *testing.T, object any) any {
	t.Helper()
	out, err := strip(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStripKeepsWhatIsRead(t *testing.T) {
	t.Parallel()
	class := &nodev1.RuntimeClass{
		ObjectMeta: meta("c"), Handler: "runsc",
		Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "x"}},
	}
	wantClass := class.DeepCopy()
	wantClass.ManagedFields, wantClass.Annotations = nil, nil
	tombstone := cache.DeletedFinalStateUnknown{Key: "n"}
	tests := map[string]struct{ object, want any }{
		"RuntimeClass": {class, wantClass},
		"Node": {fullNode(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7", Labels: map[string]string{"l": "v"}},
			Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{
				RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: "runsc"}},
				Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}},
		"Namespace": {&metav1.PartialObjectMetadata{ObjectMeta: meta("ns")}, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "ns", ResourceVersion: "7", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}},
		}},
		"what it does not know": {tombstone, tombstone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, stripped(t, test.object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStripChangesNoCatalog: what is thrown away is read by nobody.
func TestStripChangesNoCatalog(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Node){
		"as is":      func(*corev1.Node) {},
		"usable":     func(n *corev1.Node) { n.Spec = corev1.NodeSpec{} },
		"no handler": func(n *corev1.Node) { n.Status.RuntimeHandlers = nil },
		"windows":    func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" },
		"not ready": func(n *corev1.Node) {
			n.Spec = corev1.NodeSpec{}
			n.Status.Conditions[1].Status = corev1.ConditionFalse
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := fullNode()
			edit(n)
			classes := []*nodev1.RuntimeClass{
				{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Handler: "runsc"},
				{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Handler: "runsc", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"l": "v"}}},
			}
			whole := catalog.Build(classes, []*corev1.Node{n})
			after := catalog.Build(classes, []*corev1.Node{stripped(t, n.DeepCopy()).(*corev1.Node)})
			if diff := cmp.Diff(whole.RuntimeClasses, after.RuntimeClasses); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStripTwiceIsStripOnce(t *testing.T) {
	t.Parallel()
	once := stripped(t, fullNode()).(*corev1.Node)
	if diff := cmp.Diff(once.DeepCopy(), stripped(t, once)); diff != "" {
		t.Error(diff)
	}
}

func TestSameSeesWhatIsRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edit func(*corev1.Node)
		same bool
	}{
		"nothing":        {func(*corev1.Node) {}, true},
		"a heartbeat":    {func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.Now() }, true},
		"the version":    {func(n *corev1.Node) { n.ResourceVersion = "8" }, true},
		"an image":       {func(n *corev1.Node) { n.Status.Images = nil }, true},
		"an annotation":  {func(n *corev1.Node) { n.Annotations["b"] = "c" }, true},
		"pressure":       {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
		"readiness":      {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, false},
		"no condition":   {func(n *corev1.Node) { n.Status.Conditions = nil }, false},
		"cordoned":       {func(n *corev1.Node) { n.Spec.Unschedulable = false }, false},
		"a taint":        {func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		"a label":        {func(n *corev1.Node) { n.Labels["l"] = "w" }, false},
		"another label":  {func(n *corev1.Node) { n.Labels["m"] = "v" }, false},
		"a handler":      {func(n *corev1.Node) { n.Status.RuntimeHandlers[0].Name = "crun" }, false},
		"a capability":   {func(n *corev1.Node) { n.Status.RuntimeHandlers[0].Features = &corev1.NodeRuntimeHandlerFeatures{} }, false},
		"taint's effect": {func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := fullNode()
			test.edit(after)
			if got := same(stripped(t, fullNode()), stripped(t, after)); got != test.same {
				t.Errorf("same = %t, want %t", got, test.same)
			}
		})
	}
	t.Run("two classes are never the same", func(t *testing.T) {
		t.Parallel()
		if same(&nodev1.RuntimeClass{}, &nodev1.RuntimeClass{}) || same(fullNode(), &nodev1.RuntimeClass{}) || same(nil, nil) {
			t.Error("same = true")
		}
	})
}
