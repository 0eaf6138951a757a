package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// presets are the platforms, and what an untrusted pod is given there, by profile.
var presets = map[string]struct {
	flags   []string
	classes []string // name, family, isolation, overhead in memory, node selector
	routed  map[string]string
	// unready is given where no node is there.
	unready bool
}{
	"custom": {
		classes: []string{
			"crun crun host-kernel 0 runtimeclass-router.io/pool=crun",
			"gvisor gvisor user-space-kernel 64Mi runtimeclass-router.io/pool=gvisor",
			"kata-clh kata-clh guest-kernel 130Mi runtimeclass-router.io/pool=kata-clh",
			"kata-fc kata-fc guest-kernel 130Mi runtimeclass-router.io/pool=kata-fc",
			"kata-qemu kata-qemu guest-kernel 320Mi runtimeclass-router.io/pool=kata-qemu",
		},
		routed: map[string]string{"general": "gvisor", "syscall-heavy": "kata-fc", "kernel-features": "kata-qemu"},
	},
	"kata-deploy": {
		classes: []string{
			"kata-clh kata-clh guest-kernel 130Mi katacontainers.io/kata-runtime=true",
			"kata-qemu kata-qemu guest-kernel 320Mi katacontainers.io/kata-runtime=true",
		},
		routed: map[string]string{"general": "kata-clh", "syscall-heavy": "kata-clh", "kernel-features": "kata-qemu"},
	},
	"gke-sandbox": {
		classes: []string{"gvisor gvisor user-space-kernel 0 sandbox.gke.io/runtime=gvisor"},
		routed:  map[string]string{"general": "gvisor", "syscall-heavy": "gvisor", "kernel-features": "gvisor"},
	},
	"aks-pod-sandboxing": {
		classes: []string{"kata-vm-isolation kata-qemu guest-kernel 0 kubernetes.azure.com/kata-vm-isolation=true"},
		routed:  map[string]string{"general": "kata-vm-isolation", "syscall-heavy": "kata-vm-isolation", "kernel-features": "kata-vm-isolation"},
	},
	"eks": {
		flags:   []string{"--kube-version=v1.36.1-eks-1"},
		classes: []string{"isolated-sandbox isolated-sandbox guest-kernel 0 eks.amazonaws.com/nitro-sandbox=true"},
		routed:  map[string]string{"general": "isolated-sandbox", "syscall-heavy": "isolated-sandbox", "kernel-features": "isolated-sandbox"},
		unready: true, // nodes are made on demand
	},
	"edera": {
		classes: []string{"edera edera guest-kernel 0 runtime=edera"},
		routed:  map[string]string{"general": "edera", "syscall-heavy": "edera", "kernel-features": "edera"},
	},
}

// TestPresets reads the classes of each preset into the catalog, and routes pods with the
// configuration that goes with them.
func TestPresets(t *testing.T) {
	t.Parallel()
	for name, want := range presets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests, err := templateFor(t, "{preset: "+name+", runtimeClasses: {create: true}}", append(want.flags, latest)...)
			if err != nil {
				t.Fatal(err)
			}
			objects := decode(t, manifests)
			var classes []*nodev1.RuntimeClass
			var nodes []*corev1.Node
			for _, object := range objects {
				if class, ok := object.(*nodev1.RuntimeClass); ok {
					classes = append(classes, class)
					if !want.unready {
						nodes = append(nodes, nodeFor(class))
					}
				}
			}
			built := catalog.Build(classes, nodes)
			var got []string
			for i := range built.RuntimeClasses {
				class := &built.RuntimeClasses[i]
				memory := class.Overhead[corev1.ResourceMemory]
				for key, value := range class.NodeSelector {
					got = append(got, fmt.Sprintf("%s %s %s %s %s=%s", class.Name, class.Family, class.Isolation, memory.String(), key, value))
				}
				if len(class.Notes) > 0 || !class.PoolReady {
					t.Errorf("class %s: pool ready %t, notes %q", class.Name, class.PoolReady, class.Notes)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want.classes, got); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
			routed := map[string]string{}
			router := routerFor(t, built, configuration(t, objects).Router)
			for profile := range want.routed {
				routed[profile] = routeUntrusted(t, router, profile)
			}
			if diff := cmp.Diff(want.routed, routed); diff != "" {
				t.Errorf("routed (-want +got):\n%s", diff)
			}
		})
	}
}

// nodeFor is a node that the class's scheduling admits, tainted as its tolerations say.
func nodeFor(class *nodev1.RuntimeClass) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: class.Name, Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	for key, value := range class.Scheduling.NodeSelector {
		node.Labels[key] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: toleration.Key, Value: toleration.Value, Effect: toleration.Effect})
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: ""}, {Name: class.Handler}}
	return node
}

func routerFor(t *testing.T, built *catalog.Catalog, raw json.RawMessage) *webhook.Router {
	t.Helper()
	config, err := policies.ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine()
	if err := engine.Load(t.Context(), policies.Shipped(), config); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), built); err != nil {
		t.Fatal(err)
	}
	return &webhook.Router{Engine: engine}
}

// routeUntrusted is the class that a pod of an untrusted namespace gets.
func routeUntrusted(t *testing.T, router *webhook.Router, profile string) string {
	t.Helper()
	pod, err := policies.ReadPod([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "tenants"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	namespace := catalog.Namespace{Name: "tenants", Labels: map[string]string{catalog.LabelTrust: "untrusted", catalog.LabelProfile: profile}}
	route, err := router.Route(t.Context(), policies.Input{Namespace: namespace, Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	if route.Action != policies.Route {
		t.Errorf("profile %s: %s: %v", profile, route.Action, route.Reasons)
	}
	return route.RuntimeClassName
}

// TestPresetFiles: each preset has a test, a page that it goes by, and the day on which the
// page was read.
func TestPresetFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(chartPath, "files", "presets", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(presets) {
		t.Errorf("%d files and %d tests", len(files), len(presets))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if _, ok := presets[name]; !ok {
			t.Errorf("no test of preset %s", name)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var preset struct {
			CreatedBy  string `json:"createdBy"`
			Kubernetes string `json:"kubernetes,omitempty"`
			Sources    []struct {
				URL  string `json:"url"`
				Read string `json:"read"`
				Says string `json:"says"`
			} `json:"sources"`
			RuntimeClasses []json.RawMessage `json:"runtimeClasses"`
			Router         json.RawMessage   `json:"router,omitempty"`
		}
		if err := yaml.UnmarshalStrict(raw, &preset); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if preset.CreatedBy == "" || len(preset.RuntimeClasses) == 0 || len(preset.Sources) == 0 {
			t.Errorf("%s: want createdBy, runtimeClasses and sources", file)
		}
		for _, source := range preset.Sources {
			if _, err := time.Parse(time.DateOnly, source.Read); err != nil || !regexp.MustCompile(`^https://\S+$`).MatchString(source.URL) || source.Says == "" {
				t.Errorf("%s: source %+v: want a URL, a day and what it says", file, source)
			}
		}
	}
}

// TestPresetRouterYields: a key that the values give replaces the preset's whole.
func TestPresetRouterYields(t *testing.T) {
	t.Parallel()
	raw := configuration(t, render(t, `
preset: edera
router:
  unlabelledNamespaces: {trust: untrusted, mode: enforce}
  levels:
  - {name: only, floor: guest-kernel, candidates: {general: [kata-clh]}}
`)).Router
	config, err := policies.ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Levels) != 1 || config.Levels[0].Name != "only" || config.UnlabelledNamespaces.Mode != policies.Enforce {
		t.Errorf("got %s", raw)
	}
}
