package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

//go:embed notebooks/platform.yaml
var platformFile []byte

// platform is the notebook platform; its file says what the fields mean.
type platform struct {
	Pools []struct {
		Name     string            `json:"name"`
		Nodes    int               `json:"nodes"`
		Labels   map[string]string `json:"labels"`
		Taint    string            `json:"taint"`
		Handlers []string          `json:"handlers"`
	} `json:"pools"`
	Classes []struct {
		Name     string            `json:"name"`
		Handler  string            `json:"handler"`
		Memory   string            `json:"memory"`
		Selector map[string]string `json:"selector"`
		Taint    string            `json:"taint"`
	} `json:"classes"`
	Sessions []session `json:"sessions"`
}

type session struct {
	Name       string `json:"name"`
	Profile    string `json:"profile"`
	ADay       int    `json:"aDay"`
	Class      string `json:"class"`
	WithoutKVM string `json:"withoutKVM"`
	Warning    string `json:"warning"`
}

func readPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{}
	if err := yaml.UnmarshalStrict(platformFile, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// nodes are those of all pools; the KVM pool's are named kvm-1 and so on.
func (p *platform) nodes() (nodes []*corev1.Node) {
	for _, pool := range p.Pools {
		for i := range pool.Nodes {
			n := node(fmt.Sprintf("%s-%d", pool.Name, i+1), pool.Handlers...)
			for key, value := range pool.Labels {
				n.Labels[key] = value
			}
			if pool.Taint != "" {
				n.Spec.Taints = []corev1.Taint{{Key: pool.Taint, Effect: corev1.TaintEffectNoSchedule}}
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (p *platform) classes() (classes []*nodev1.RuntimeClass) {
	for _, c := range p.Classes {
		class := &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: c.Name},
			Handler:    c.Handler,
			Scheduling: &nodev1.Scheduling{NodeSelector: c.Selector},
		}
		if c.Memory != "" {
			class.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.Memory)}}
		}
		if c.Taint != "" {
			class.Scheduling.Tolerations = []corev1.Toleration{{Key: c.Taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		}
		classes = append(classes, class)
	}
	return classes
}

func isKVM(n *corev1.Node) bool { return strings.HasPrefix(n.Name, "kvm-") }

func isKata(c *nodev1.RuntimeClass) bool { return strings.HasPrefix(c.Handler, "kata") }

// withoutKVM are the ways in which the KVM pool goes away.
var withoutKVM = map[string]func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass){
	"nodes removed": func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass) {
		return slices.DeleteFunc(nodes, isKVM), classes
	},
	"nodes not ready": func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass) {
		for _, n := range nodes {
			if isKVM(n) {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
		}
		return nodes, classes
	},
	"nodes cordoned": func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass) {
		for _, n := range nodes {
			n.Spec.Unschedulable = isKVM(n)
		}
		return nodes, classes
	},
	"handlers gone": func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass) {
		for _, n := range nodes {
			if isKVM(n) {
				n.Status.RuntimeHandlers = n.Status.RuntimeHandlers[:1] // the default
			}
		}
		return nodes, classes
	},
	"classes removed": func(nodes []*corev1.Node, classes []*nodev1.RuntimeClass) ([]*corev1.Node, []*nodev1.RuntimeClass) {
		return nodes, slices.DeleteFunc(classes, isKata)
	},
}

// pod is the pod of a session: a shape of the suite, with the session's profile.
func (s *session) pod(t *testing.T) json.RawMessage {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(shape(t, "kubeflow-notebook").Raw, &object); err != nil {
		t.Fatal(err)
	}
	// The home of a session is copied in when it starts: Firecracker shares no files.
	spec := object["spec"].(map[string]any)
	spec["volumes"] = []any{map[string]any{"name": "home", "emptyDir": map[string]any{}}, map[string]any{"name": "shm", "emptyDir": map[string]any{"medium": "Memory"}}}
	if s.Profile != "" {
		object["metadata"].(map[string]any)["labels"].(map[string]any)[catalog.LabelProfile] = s.Profile
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestNotebookPlatform(t *testing.T) {
	t.Parallel()
	p := readPlatform(t)
	b := newBenchOver(t, catalog.Build(p.classes(), p.nodes()), "")
	aDay, byClass := 0, map[string]int{}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		outcome, route := b.admit(t, Untrusted, s.pod(t))
		if outcome.Class != s.Class || len(route.Warnings) > 0 {
			t.Errorf("%s: %s, want %s; warnings %q", s.Name, &outcome, s.Class, route.Warnings)
		}
		aDay += s.ADay
		byClass[outcome.Class] += s.ADay
	}
	if nodes := len(p.nodes()); nodes != 40 || aDay != 4000 {
		t.Errorf("%d nodes and %d sessions a day, want 40 and 4000", nodes, aDay)
	}
	if diff := cmp.Diff(map[string]int{"gvisor": 3000, "firecracker": 850, "qemu": 150}, byClass); diff != "" {
		t.Errorf("sessions a day:\n%s", diff)
	}
}

// TestNotebookPlatformWithoutKVM: every session goes on, on gVisor, and those that lose
// by it are told.
func TestNotebookPlatformWithoutKVM(t *testing.T) {
	t.Parallel()
	for name, lose := range withoutKVM {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := readPlatform(t)
			nodes, classes := lose(p.nodes(), p.classes())
			b := newBenchOver(t, catalog.Build(classes, nodes), "")
			for i := range p.Sessions {
				s := &p.Sessions[i]
				outcome, route := b.admit(t, Untrusted, s.pod(t))
				if outcome.Denied || outcome.Class != s.WithoutKVM {
					t.Errorf("%s: %s, want %s: %s", s.Name, &outcome, s.WithoutKVM, outcome.Message)
				}
				if said := strings.Join(route.Warnings, "\n"); (said != "") != (s.Warning != "") || !strings.Contains(said, s.Warning) {
					t.Errorf("%s: warnings %q, want %q", s.Name, said, s.Warning)
				}
			}
		})
	}
}

// TestNotebookThatNeedsKVM: one with a raw block device waits for the pool, with a
// warning, and is refused only where there is no class that could ever run it.
func TestNotebookThatNeedsKVM(t *testing.T) {
	t.Parallel()
	for name, lose := range withoutKVM {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := readPlatform(t)
			nodes, classes := lose(p.nodes(), p.classes())
			b := newBenchOver(t, catalog.Build(classes, nodes), "")
			outcome, route := b.admit(t, Untrusted, shape(t, "raw-block-database").Raw)
			if gone := name == "classes removed"; outcome.Denied != gone || !gone && outcome.Class != "firecracker" {
				t.Fatalf("%s: %s", &outcome, outcome.Message)
			}
			if !outcome.Denied && !strings.Contains(strings.Join(route.Warnings, "\n"), "the pod waits until one is") {
				t.Errorf("it is not told that it waits: %q", route.Warnings)
			}
		})
	}
}
