package backstop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// class is a RuntimeClass whose pool is selected by its name.
func class(name, handler string, labels ...string) *nodev1.RuntimeClass {
	c := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Handler: handler,
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": name}},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[catalog.Prefix+key] = value
	}
	return c
}

func node(name, pool, handler string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}},
		Status: corev1.NodeStatus{
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: handler}},
		},
	}
}

// state is a cluster with two sandboxes, and one class that only looks like one.
func state(change ...func(*backstop.State)) backstop.State {
	config := policies.DefaultConfig()
	s := backstop.State{
		Config: &config,
		Catalog: catalog.Build([]*nodev1.RuntimeClass{
			class("crun", "crun"), class("gvisor", "runsc"), class("kata-qemu", "kata-qemu"), class("sandbox", "runc"),
		}, []*corev1.Node{node("c1", "crun", "crun"), node("g1", "gvisor", "runsc"), node("q1", "kata-qemu", "kata-qemu"), node("q2", "kata-qemu", "kata-qemu")}),
		Nodes: []string{"q2", "g1", "c1", "q1"},
		Date:  "2026-07-01",
	}
	for _, apply := range change {
		apply(&s)
	}
	return s
}

// parameters are those of the state, by their keys without the prefix.
func parameters(t *testing.T, s backstop.State) map[string]string {
	t.Helper()
	annotations, _, err := backstop.Parameters(s)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{}
	for key, value := range annotations {
		data[strings.TrimPrefix(key, "guards.runtimeclass-router.io/")] = value
	}
	return data
}

func TestParameters(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"levels": "trusted\nuntrusted", "open-levels": "trusted", "default-trust": "untrusted", "default-mode": "warn",
		"classes": "untrusted/gvisor\nuntrusted/kata-qemu", "nodes": "gvisor/g1\nkata-qemu/q1\nkata-qemu/q2",
		"fallback": "gvisor", "exceptions": "", "privileged-classes": "", "gpu-classes": "", "allowed-host-paths": "",
		"gpu-resources":            "amd.com/gpu\ngpu.intel.com/*\nhabana.ai/gaudi\nnvidia.com/*",
		"allowed-device-resources": "", "allowed-runtime-annotations": "",
		"virtual-nodes": "isolating=true,type=virtual-kubelet\nscheduler:fargate-scheduler",
	}
	virtual := func(s *backstop.State) {
		s.Config.IsolatingVirtualNodes = []policies.VirtualNode{
			{Name: "f", SchedulerName: "fargate-scheduler"}, {Name: "a", NodeSelector: map[string]string{"type": "virtual-kubelet", "isolating": "true"}},
		}
	}
	if diff := cmp.Diff(want, parameters(t, state(virtual))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParametersByKey(t *testing.T) {
	t.Parallel()
	level := func(name string, floor catalog.Isolation, general ...string) policies.Level {
		return policies.Level{Name: name, Floor: floor, Candidates: map[string][]string{policies.GeneralProfile: general}}
	}
	for name, test := range map[string]struct {
		change    func(*backstop.State)
		key, want string
	}{
		"three levels": {func(s *backstop.State) {
			s.Config.Levels = []policies.Level{level("a", catalog.HostKernel), level("b", catalog.UserSpaceKernel), level("c", catalog.GuestKernel)}
		}, "classes", "b/gvisor\nb/kata-qemu\nc/kata-qemu"},
		"fallback of the strictest": {func(s *backstop.State) {
			s.Config.Levels = []policies.Level{level("a", catalog.UserSpaceKernel, "gvisor"), level("b", catalog.GuestKernel, "gvisor", "crun", "kata-qemu")}
		}, "fallback", "kata-qemu"},
		"fallback by class": {func(s *backstop.State) {
			s.Config.Levels[1] = level("untrusted", catalog.UserSpaceKernel, "class:sandbox", "class:kata-qemu")
		}, "fallback", "kata-qemu"},
		"fallback whose pool is ready": {func(s *backstop.State) {
			s.Catalog = catalog.Build([]*nodev1.RuntimeClass{class("gvisor", "runsc"), class("kata-qemu", "kata-qemu")}, []*corev1.Node{node("q1", "kata-qemu", "kata-qemu")})
		}, "fallback", "kata-qemu"},
		"fallback, and none is ready": {func(s *backstop.State) {
			s.Catalog = catalog.Build([]*nodev1.RuntimeClass{class("gvisor", "runsc"), class("kata-qemu", "kata-qemu")}, nil)
		}, "fallback", "gvisor"},
		"fallback as given":        {func(s *backstop.State) { s.Fallback = "kata-qemu" }, "fallback", "kata-qemu"},
		"fallback without a floor": {func(s *backstop.State) { s.Fallback = "sandbox" }, "fallback", ""},
		"fallback that is gone":    {func(s *backstop.State) { s.Fallback = "gone" }, "fallback", ""},
		"exceptions": {func(s *backstop.State) {
			s.Config.Exceptions = []policies.Exception{
				{Namespaces: []string{"b", "a"}, RuntimeClassName: "crun", Until: "2026-07-01"},
				{Namespaces: []string{"a"}, RuntimeClassName: "crun", Until: "2026-08-01"},
				{Namespaces: []string{"c"}, RuntimeClassName: "plain", ServiceAccounts: []string{"x", "y"}, Until: "2026-08-01"},
				{Namespaces: []string{"d"}, RuntimeClassName: "crun", Until: "2026-06-30"},
			}
		}, "exceptions", "a/crun/*\nb/crun/*\nc/plain/x\nc/plain/y"},
		"privileged by family": {func(s *backstop.State) { s.Config.PrivilegedRuntimes = []string{"gvisor", "crun"} }, "privileged-classes", "gvisor"},
		"privileged by name":   {func(s *backstop.State) { s.Config.PrivilegedRuntimes = []string{"class:kata-qemu"} }, "privileged-classes", "kata-qemu"},
		"devices withheld":     {withheld, "privileged-classes", "kata-qemu"},
		"GPU":                  {func(s *backstop.State) { s.Config.GPURuntimes = []string{"kata-qemu"} }, "gpu-classes", "kata-qemu"},
		"host paths never given": {func(s *backstop.State) {
			s.Config.AllowedHostPaths = []string{"/var/log", "/proc", "/dev/shm", "/sys/fs/bpf", "/devices", "//proc/x"}
		}, "allowed-host-paths", "/devices\n/var/log"},
		"too many nodes": {func(s *backstop.State) {
			var nodes []*corev1.Node
			s.Nodes = nil
			for i := range 1500 {
				nodes = append(nodes, node(fmt.Sprintf("%0200d", i), "gvisor", "runsc"))
				s.Nodes = append(s.Nodes, nodes[i].Name)
			}
			s.Catalog = catalog.Build([]*nodev1.RuntimeClass{class("gvisor", "runsc")}, nodes)
		}, "nodes", "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parameters(t, state(test.change))[test.key]; got != test.want {
				t.Errorf("%s is %q, want %q", test.key, got, test.want)
			}
		})
	}
}

// withheld labels a guest-kernel class, and one that is none.
func withheld(s *backstop.State) {
	s.Catalog = catalog.Build([]*nodev1.RuntimeClass{
		class("kata-qemu", "kata-qemu", "host-devices=withheld"), class("gvisor", "runsc", "host-devices=withheld"),
	}, nil)
}

func TestParametersThatCannotBeExpressed(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*backstop.State){
		`trust level "a b"`:      func(s *backstop.State) { s.Config.Levels[1].Name = "a b" },
		`trust level "a/b"`:      func(s *backstop.State) { s.Config.Levels[1].Name = "a/b" },
		`"/a\n/" has a line`:     func(s *backstop.State) { s.Config.AllowedHostPaths = []string{"/a\n/"} },
		`"dev.x\n*" has a line`:  func(s *backstop.State) { s.Config.AllowedRuntimeAnnotations = []string{"dev.x\n*"} },
		`"a.com/b\n*" has a lin`: func(s *backstop.State) { s.Config.AllowedDeviceResources = []string{"a.com/b\n*"} },
	} {
		data, _, err := backstop.Parameters(state(change))
		if err == nil || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("got %v, %v; want %q and no data", data, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []backstop.Options{{}, {Namespace: "a", ServiceAccount: "b"}, {Namespace: "a", ServiceAccount: "b", Fallback: "c"}} {
		if err := o.Validate(field.NewPath("guards")).ToAggregate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	bad := backstop.Options{Namespace: "", ServiceAccount: "B", Fallback: "C"}
	err := bad.Validate(field.NewPath("guards")).ToAggregate()
	for _, want := range []string{"guards.namespace", "guards.serviceAccount", "guards.fallback"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %s: %v", want, err)
		}
	}
}
