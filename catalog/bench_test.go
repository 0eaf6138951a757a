package catalog

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// BenchmarkBuild works a catalog out, as happens when a class or a node changes.
func BenchmarkBuild(b *testing.B) {
	for _, size := range []struct{ classes, nodes int }{{5, 10}, {5, 5000}, {200, 5000}} {
		var classes []*nodev1.RuntimeClass
		for i := range size.classes {
			classes = append(classes, class(fmt.Sprintf("class-%d", i), selecting(fmt.Sprintf("pool-%d", i))))
		}
		var nodes []*corev1.Node
		for i := range size.nodes {
			nodes = append(nodes, node(fmt.Sprintf("node-%d", i)))
		}
		b.Run(fmt.Sprintf("classes=%d/nodes=%d", size.classes, size.nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Build(classes, nodes)
			}
		})
	}
}
