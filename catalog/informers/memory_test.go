package informers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMemory: what a node and a namespace take while they are cached, in bytes. Each is of
// the size that clouds make them. The bounds leave half of room; raise them knowingly. The
// test is not parallel: tests that are do not run meanwhile.
func TestMemory(t *testing.T) {
	labels := map[string]string{}
	for i := range 20 {
		labels[fmt.Sprintf("topology.example.com/label-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	for name, test := range map[string]struct {
		object func() any
		most   uint64
	}{
		"node": {func() any {
			node := fullNode()
			node.Labels = labels
			node.Annotations = map[string]string{"example.com/state": strings.Repeat("a", 4096)}
			node.Status.Images = nil
			for i := range 50 {
				node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
					Names: []string{fmt.Sprintf("example.com/image-%d@sha256:%064d", i, i), fmt.Sprintf("example.com/image-%d:v1", i)},
				})
			}
			node.Status.RuntimeHandlers = nil
			for _, handler := range []string{"", "crun", "runc", "runsc", "kata-fc", "kata-qemu"} {
				node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: handler, Features: &corev1.NodeRuntimeHandlerFeatures{}})
			}
			return node
		}, 6 << 10},
		"namespace": {func() any {
			namespace := &metav1.PartialObjectMetadata{ObjectMeta: meta("n")}
			namespace.Labels, namespace.ManagedFields = labels, []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf("%q", strings.Repeat("f", 4096)))}}
			return namespace
		}, 5 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			whole := heapOf(t, test.object, func(object any) any { return object })
			cached := heapOf(t, test.object, func(object any) any { return stripped(t, object) })
			t.Logf("%d bytes cached, %d as sent", cached, whole)
			if cached > test.most {
				t.Errorf("%d bytes, want at most %d", cached, test.most)
			}
			if cached > whole*2/3 {
				t.Errorf("%d bytes of %d are kept: nothing to speak of is thrown away", cached, whole)
			}
		})
	}
}

// heapOf is what one object takes that has come over the wire.
func heapOf(t *testing.T, object func() any, keep func(any) any) uint64 {
	t.Helper()
	sent, err := json.Marshal(object())
	if err != nil {
		t.Fatal(err)
	}
	const objects = 500
	kept := make([]any, objects)
	before := heap()
	for i := range kept {
		fresh := reflect.New(reflect.TypeOf(object()).Elem()).Interface()
		if err := json.Unmarshal(sent, fresh); err != nil {
			t.Fatal(err)
		}
		kept[i] = keep(fresh)
	}
	after := heap()
	runtime.KeepAlive(kept)
	return (after - before) / objects
}

// heap is what is reachable: the second collection frees what finalizers of the first kept.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
