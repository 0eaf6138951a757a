package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
)

func classes(t *testing.T) *catalog.Catalog {
	t.Helper()
	cluster, err := conformance.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Catalog()
}

func named(t *testing.T, name string) *conformance.Shape {
	t.Helper()
	for i := range shapes {
		if shapes[i].Name == name {
			return &shapes[i]
		}
	}
	t.Fatalf("there is no shape %s", name)
	return nil
}

// TestPods: the verdict on every pod, from an API server's answer.
func TestPods(t *testing.T) {
	t.Parallel()
	known := classes(t)
	for i := range shapes {
		s := &shapes[i]
		for _, namespace := range Namespaces(s) {
			t.Run(s.Name+"/"+namespace, func(t *testing.T) {
				t.Parallel()
				outcome, _, err := Create(t.Context(), shared.Client, s, namespace, client.DryRunAll)
				if err != nil {
					t.Fatal(err)
				}
				if want := s.Expect.In(namespace); !outcome.Allowed(want, known) {
					t.Errorf("%s (patched: %t) is none of %v; %s", &outcome, outcome.Patched, want, outcome.Message)
				}
				if ours := strings.Contains(outcome.Message, "runtimeclass-router: "); outcome.Denied && !ours && s.Name != "empty-class" {
					t.Errorf("the denial is not in our words: %s", outcome.Message)
				}
				t.Logf("%s %s", &outcome, outcome.Message)
			})
		}
	}
}

// TestStoredPods: some are created for good, have all of their class, and are bound to a
// node of its pool.
func TestStoredPods(t *testing.T) {
	t.Parallel()
	known := classes(t)
	for name, test := range map[string]struct{ shape, namespace, class, node string }{
		"chosen":          {"bare", conformance.Untrusted, "gvisor", "gvisor-a"},
		"trusted":         {"bare", conformance.Trusted, "crun", "general-a"},
		"lowered":         {"fork-build", conformance.Trusted, "gvisor", "gvisor-a"},
		"asked for":       {"agent-sandbox-warm", conformance.Untrusted, "gvisor", "gvisor-a"},
		"class replaced":  {"class-residue", conformance.Untrusted, "gvisor", "gvisor-a"},
		"injected":        {"istio-native-sidecar", conformance.Untrusted, "kata", "kata-a"},
		"own selector":    {"acme-solver", conformance.Untrusted, "gvisor", "gvisor-a"},
		"overhead copied": {"overhead-of-a-copied-pod", conformance.Untrusted, "gvisor", "gvisor-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome, pod, err := Create(t.Context(), shared.Client, named(t, test.shape), test.namespace)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Class != test.class {
				t.Fatalf("%s, want %s: %s", &outcome, test.class, outcome.Message)
			}
			t.Cleanup(func() {
				if err := shared.Client.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)); err != nil {
					t.Error(err)
				}
			})
			class := known.RuntimeClass(test.class)
			for key, value := range class.NodeSelector {
				if pod.Spec.NodeSelector[key] != value {
					t.Errorf("node selector %v lacks %s=%s", pod.Spec.NodeSelector, key, value)
				}
			}
			for resource, quantity := range class.Overhead {
				if got := pod.Spec.Overhead[resource]; got.Cmp(quantity) != 0 {
					t.Errorf("overhead of %s is %s, want %s", resource, got.String(), quantity.String())
				}
			}
			if len(class.Overhead) != len(pod.Spec.Overhead) {
				t.Errorf("overhead %v, want %v", pod.Spec.Overhead, class.Overhead)
			}
			if got := boundTo(t, pod); got != test.node {
				t.Errorf("bound to %q, want %s", got, test.node)
			}
		})
	}
}

func boundTo(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	var now corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := shared.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now)
		return now.Spec.NodeName != "", err
	})
	if err != nil {
		t.Errorf("wait for the scheduler: %v; %+v", err, now.Status.Conditions)
	}
	return now.Spec.NodeName
}
