package policies

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// largePod is a pod of three containers. One of another team is another pod to the
// policy: it reads tolerations.
func largePod(team int) []byte {
	var containers []string
	for i := range 3 {
		var env []string
		for j := range 16 {
			env = append(env, fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%02d-xxxxxxxxxxxxxxxxxxxx"}`, j, j))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example.com/shop/api:1","env":[%s],`+
			`"resources":{"limits":{"cpu":"500m","memory":"256Mi"}},"volumeMounts":[{"name":"config","mountPath":"/etc/app"}],`+
			`"securityContext":{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true}}`, i, strings.Join(env, ",")))
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"shop"}},"spec":{"containers":[%s],`+
		`"volumes":[{"name":"config","configMap":{"name":"shop"}}],"nodeSelector":{"kubernetes.io/os":"linux"},`+
		`"tolerations":[{"key":"example.com/team-%d","operator":"Exists"}]}}`, strings.Join(containers, ","), team)
}

func BenchmarkReadPod(b *testing.B) {
	raw := largePod(0)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadPod(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecide decides on one pod again and again, and on pods of which each is new.
func BenchmarkDecide(b *testing.B) {
	pods := make([]*Pod, remembered+1000)
	for i := range pods {
		pod, err := ReadPod(largePod(i))
		if err != nil {
			b.Fatal(err)
		}
		pods[i] = pod
	}
	namespace := catalog.Namespace{Name: "shop", Labels: map[string]string{catalog.LabelTrust: "untrusted"}}
	for _, test := range []struct {
		name string
		next func(i int) *Pod
	}{
		{"remembered", func(int) *Pod { return pods[0] }},
		// More than are remembered, so that none is when its turn comes again.
		{"new", func(i int) *Pod { return pods[i%len(pods)] }},
	} {
		b.Run(test.name, func(b *testing.B) {
			engine := NewEngine()
			if err := engine.Load(b.Context(), Shipped(), DefaultConfig()); err != nil {
				b.Fatal(err)
			}
			snapshot, err := engine.Snapshot()
			if err != nil {
				b.Fatal(err)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := snapshot.Decide(b.Context(), Input{Namespace: namespace, Pod: test.next(i)}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkLoad compiles the shipped policy and puts it in force.
func BenchmarkLoad(b *testing.B) {
	engine, modules, config := NewEngine(), Shipped(), DefaultConfig()
	b.ReportAllocs()
	for b.Loop() {
		if err := engine.Load(b.Context(), modules, config); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatalog puts catalogs of as many classes in force, and decides over them.
func BenchmarkCatalog(b *testing.B) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, handler := range []string{"crun", "runsc", "kata-fc", "kata-clh", "kata-qemu"} {
		node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: handler})
	}
	for _, n := range []int{5, 200} {
		var classes []*nodev1.RuntimeClass
		for i := range n {
			handler := []string{"crun", "runsc", "kata-fc", "kata-clh", "kata-qemu"}[min(i, 4)]
			classes = append(classes, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%03d", i)}, Handler: handler})
		}
		engine := NewEngine()
		if err := engine.Load(b.Context(), Shipped(), DefaultConfig()); err != nil {
			b.Fatal(err)
		}
		c := catalog.Build(classes, []*corev1.Node{node})
		b.Run(fmt.Sprintf("classes=%d/swap", n), func(b *testing.B) {
			empty := catalog.Build(nil, nil)
			for b.Loop() {
				for _, c := range []*catalog.Catalog{empty, c} {
					if err := engine.SetCatalog(b.Context(), c); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		s, err := engine.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("classes=%d/evaluate", n), func(b *testing.B) {
			in := plainInput()
			for b.Loop() {
				if _, err := s.Evaluate(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
