package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const (
	propertySeed     = 20240817
	propertyCatalogs = 16
	propertyPods     = 60 // for each catalog
)

// dice generates objects.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 1))} }

// one in n.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

func (d dice) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key: pick(d, "sandbox", "gpu", "a/b~c"), Operator: pick[corev1.TolerationOperator](d, "", "Exists", "Equal"),
		Effect: pick[corev1.TaintEffect](d, "", "NoSchedule", "NoExecute"),
	}
	if t.Operator != corev1.TolerationOpExists {
		t.Value = pick(d, "", "x", "y")
	} else if d.one(4) {
		t.Key = ""
	}
	if t.Effect == corev1.TaintEffectNoExecute && d.one(3) {
		t.TolerationSeconds = new(d.Int64N(3))
	}
	return t
}

func (d dice) overhead() corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(d, "250m", "0.25", "1"))}
	if d.one(2) {
		list[corev1.ResourceMemory] = resource.MustParse(pick(d, "160Mi", "163840Ki", "64Mi"))
	}
	if d.one(8) {
		list["example.com/token"] = resource.MustParse("1")
	}
	return list
}

func (d dice) selector() map[string]string {
	s := map[string]string{}
	for d.one(2) {
		s[pick(d, "pool", "zone", "example.com/a~b")] = pick(d, "x", "y", "z")
	}
	return s
}

func (d dice) cluster() *catalog.Catalog {
	var classes []*nodev1.RuntimeClass
	for _, handler := range []string{"crun", "runc", "runsc", "runsc-kvm", "kata-fc", "kata-clh", "kata-qemu", "kata", "nvidia"} {
		for n := range d.IntN(3) {
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", handler, n), Labels: map[string]string{}}, Handler: handler}
			if d.one(2) {
				class.Scheduling = &nodev1.Scheduling{NodeSelector: d.selector()}
				for d.one(2) {
					class.Scheduling.Tolerations = append(class.Scheduling.Tolerations, d.toleration())
				}
			}
			if d.one(2) {
				class.Overhead = &nodev1.Overhead{PodFixed: d.overhead()}
			} else if d.one(4) {
				class.Overhead = &nodev1.Overhead{}
			}
			if d.one(4) {
				class.Labels[catalog.LabelIsolation] = pick(d, "host-kernel", "user-space-kernel", "guest-kernel", "nonsense")
			}
			if d.one(4) {
				class.Labels[catalog.LabelHostDevices] = "withheld"
			}
			if d.one(4) {
				class.Labels[catalog.LabelAvailability] = "autoscaled"
			}
			classes = append(classes, class)
		}
	}
	var nodes []*corev1.Node
	for n := range d.IntN(5) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n), Labels: d.selector()}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: pick(d, corev1.ConditionTrue, corev1.ConditionFalse)}}
		for d.one(2) {
			yes := d.one(2)
			node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{
				Name: pick(d, "", "crun", "runsc", "kata-qemu"), Features: &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: &yes},
			})
		}
		nodes = append(nodes, node)
	}
	return catalog.Build(classes, nodes)
}

func (d dice) labels() map[string]string {
	l := map[string]string{}
	if !d.one(4) {
		l[catalog.LabelTrust] = pick(d, "trusted", "restricted", "untrusted", "untrusted", "", "nonsense")
	}
	if d.one(3) {
		l[catalog.LabelProfile] = pick(d, "general", "syscall-heavy", "kernel-features", "nonsense")
	}
	return l
}

func (d dice) namespace() *catalog.Namespace {
	ns := &catalog.Namespace{Name: "ns", Labels: d.labels()}
	if d.one(2) {
		ns.Labels[catalog.LabelMode] = pick(d, "enforce", "enforce", "enforce", "warn", "audit", "nonsense")
	}
	return ns
}

// pod is a pod as it may reach a webhook: what a user wrote, and, if it names a class,
// mostly after the API server's plugin has been over it.
func (d dice) pod(c *catalog.Catalog) json.RawMessage {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	metadata := metav1.ObjectMeta{Name: pick(d, "", "p"), GenerateName: pick(d, "", "p-"), Labels: d.labels()}
	if d.one(3) {
		metadata.Annotations = map[string]string{pick(d, "note", "a/b", catalog.AnnotationReason): "x"}
		if d.one(2) {
			metadata.Annotations[catalog.AnnotationTrust] = pick(d, "trusted", "untrusted")
		}
	}
	if d.one(6) {
		metadata.OwnerReferences = []metav1.OwnerReference{{Kind: pick(d, "DaemonSet", "ReplicaSet"), Name: "o"}}
	}
	if d.one(2) {
		spec.NodeSelector = d.selector()
	}
	for d.one(2) {
		spec.Tolerations = append(spec.Tolerations, d.toleration())
	}
	if d.one(8) {
		spec.Overhead = d.overhead()
	}
	if d.one(8) {
		spec.NodeName = "node"
	}
	spec.HostNetwork, spec.HostPID, spec.HostIPC = d.one(16), d.one(24), d.one(24)
	if d.one(16) {
		spec.HostUsers = new(d.one(2))
	}
	if d.one(12) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}}}
	}
	if d.one(8) {
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(d.one(2))}
	}
	if d.one(12) {
		spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	}
	if d.one(10) {
		spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/v"}}
	}
	if d.one(10) {
		spec.InitContainers = []corev1.Container{{Name: "i", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: new(d.one(2))}}}
	}
	if d.one(2) {
		name := "unknown"
		if n := len(c.RuntimeClasses); n > 0 && !d.one(10) {
			name = c.RuntimeClasses[d.IntN(n)].Name
		}
		asked := spec.DeepCopy()
		asked.RuntimeClassName = &name
		// A contradiction never gets as far as a webhook.
		if err := admit(c, asked.DeepCopy()); err == nil || name == "unknown" {
			if !d.one(4) {
				_ = admit(c, asked)
			}
			spec = *asked
		}
	}
	return d.raw(metadata, spec)
}

// raw encodes a pod, with fields that this build does not know and with null and
// empty ones here and there.
func (d dice) raw(metadata metav1.ObjectMeta, spec corev1.PodSpec) json.RawMessage {
	var object map[string]any
	raw, err := json.Marshal(corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metadata, Spec: spec})
	if err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		panic(err)
	}
	inSpec, inMetadata := object["spec"].(map[string]any), object["metadata"].(map[string]any)
	if d.one(3) {
		inSpec["futureField"] = map[string]any{"a": []any{1.5, nil}}
		inSpec["containers"].([]any)[0].(map[string]any)["futureField"] = "x"
	}
	if tolerations, ok := inSpec["tolerations"].([]any); ok && d.one(4) {
		tolerations[0].(map[string]any)["futureField"] = "x"
	}
	for field, empty := range map[string]any{"nodeSelector": map[string]any{}, "tolerations": []any{}, "overhead": map[string]any{}, "runtimeClassName": nil} {
		if _, ok := inSpec[field]; !ok && d.one(6) {
			inSpec[field] = pick(d, nil, empty)
		}
	}
	if _, ok := inMetadata["annotations"]; !ok && d.one(6) {
		inMetadata["annotations"] = pick[any](d, nil, map[string]any{})
	}
	if raw, err = json.Marshal(object); err != nil {
		panic(err)
	}
	return raw
}

// TestRoutesHoldTheirPromises routes generated pods in generated clusters.
func TestRoutesHoldTheirPromises(t *testing.T) {
	t.Parallel()
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), threeLevels()); err != nil {
		t.Fatal(err)
	}
	router := &Router{Engine: engine}
	actions := map[string]int{}
	for n := range uint64(propertyCatalogs) {
		d := newDice(propertySeed + n)
		c := d.cluster()
		if err := engine.SetCatalog(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for i := range propertyPods {
			namespace, pod := d.namespace(), d.pod(c)
			in := policies.Input{Namespace: *namespace, Pod: asPod(t, pod)}
			checkEvaluators(t, engine, in)
			route, err := router.Route(t.Context(), in)
			if err != nil {
				t.Errorf("the shipped policy is at fault: %v", err)
			} else {
				actions[fmt.Sprint(route.Mode, " ", route.Action, " patched ", len(route.Patch) > 0)]++
				checkPatch(t, router, namespace, pod, route.Patch)
				checkRoute(t, router, namespace, pod, &route)
			}
			if t.Failed() {
				catalog, _ := json.Marshal(c)
				t.Fatalf("seed %d, pod %d, namespace %v\npod %s\ncatalog %s\nroute %+v", propertySeed+n, i, namespace.Labels, pod, catalog, route)
			}
		}
	}
	for _, want := range []string{
		"enforce route patched true", "enforce keep patched false", "enforce keep patched true", "enforce deny patched false",
		"warn route patched false", "audit deny patched false",
	} {
		if actions[want] < 10 {
			t.Errorf("the generator hardly ever gets to %q: %v", want, actions)
		}
	}
}

// checkEvaluators holds the plan of the policy to its rules.
func checkEvaluators(t *testing.T, engine *policies.Engine, in policies.Input) {
	t.Helper()
	snapshot, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(snapshot.Unplanned(), snapshot.Agree(t.Context(), in)); err != nil {
		t.Error(err)
	}
}

// checkRoute holds a route to the floor, and its result to what the API server takes.
func checkRoute(t *testing.T, router *Router, namespace *catalog.Namespace, pod json.RawMessage, route *Route) {
	t.Helper()
	if route.Mode != policies.Enforce || route.Action == policies.Deny {
		if len(route.Patch) > 0 {
			t.Error("a patch where nothing may be changed")
		}
		return
	}
	snapshot, err := router.Engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var before, after corev1.Pod
	for into, raw := range map[*corev1.Pod]json.RawMessage{&before: pod, &after: apply(t, pod, route.Patch)} {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	isolation, name := catalog.HostKernel, ""
	if after.Spec.RuntimeClassName != nil {
		name = *after.Spec.RuntimeClassName
		if class := snapshot.Catalog().RuntimeClass(name); class != nil {
			isolation = class.Isolation
		}
	}
	config := snapshot.Config()
	level := config.Levels[bound(config, namespace.Labels, before.Labels)]
	if !isolation.AtLeast(level.Floor) {
		t.Errorf("runs under %s (%q), below %s, the floor of %s", isolation, name, level.Floor, level.Name)
	}
	if name != route.RuntimeClassName {
		t.Errorf("the pod gets class %q and the route says %q", name, route.RuntimeClassName)
	}
	if route.Action != policies.Route {
		return // what a pod brought along, the API server had judged before
	}
	if err := admit(snapshot.Catalog(), &after.Spec); err != nil {
		t.Errorf("the API server refuses the result: %v", err)
	}
	if err := validate(snapshot.Catalog(), &after.Spec); err != nil {
		t.Errorf("the API server refuses the result: %v", err)
	}
	checkTakenOut(t, snapshot.Catalog(), &before.Spec, &after.Spec)
}

// checkTakenOut: nothing of the class that the pod arrived with stays, but for what the
// new class wants too.
func checkTakenOut(t *testing.T, c *catalog.Catalog, before, after *corev1.PodSpec) {
	t.Helper()
	if before.RuntimeClassName == nil {
		return
	}
	from := c.RuntimeClass(*before.RuntimeClassName)
	if from == nil {
		return
	}
	to := &catalog.RuntimeClass{}
	if after.RuntimeClassName != nil {
		to = c.RuntimeClass(*after.RuntimeClassName)
	}
	for key, value := range after.NodeSelector {
		if has(from.NodeSelector, key, value) && !has(to.NodeSelector, key, value) {
			t.Errorf("selector %s=%s of class %s stays", key, value, from.Name)
		}
	}
	for _, toleration := range after.Tolerations {
		if contains(from.Tolerations, toleration) && !contains(to.Tolerations, toleration) {
			t.Errorf("toleration %v of class %s stays", toleration, from.Name)
		}
	}
}
