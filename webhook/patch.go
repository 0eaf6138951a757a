package webhook

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// placement is what a pod ends up with in the four fields that routing owns.
type placement struct {
	class        *catalog.RuntimeClass // nil: the node's default runtime
	nodeSelector map[string]string
	tolerations  []corev1.Toleration
	overhead     corev1.ResourceList
}

// place works out the placement of a pod that is to run under class to, with what
// the policy adds. What the API server merged in for the class that the pod arrived
// with (its selector and tolerations, exactly) is taken out, and to's is put in. A
// key of the pod's own with another value is not overwritten: the API server would
// refuse the pod, in words that name no policy.
func place(pod *Pod, from, to *catalog.RuntimeClass, extraSelector map[string]string, extraTolerations []corev1.Toleration) (placement, error) {
	p := placement{class: to, nodeSelector: map[string]string{}}
	maps.Copy(p.nodeSelector, pod.NodeSelector)
	if from != nil {
		maps.DeleteFunc(p.nodeSelector, func(key, value string) bool { return has(from.NodeSelector, key, value) })
	}
	wanted := slices.Clone(extraTolerations)
	selectors := []map[string]string{extraSelector}
	if to != nil {
		p.overhead = to.Overhead
		wanted = append(slices.Clone(to.Tolerations), wanted...)
		selectors = []map[string]string{to.NodeSelector, extraSelector}
	}
	for _, selector := range selectors {
		for key, value := range selector {
			if own, ok := p.nodeSelector[key]; ok && own != value {
				return placement{}, unsafe("node selector %s=%s contradicts the pod's %q", key, value, own)
			}
			p.nodeSelector[key] = value
		}
	}
	for _, t := range pod.Tolerations {
		if from == nil || contains(wanted, t) || !contains(from.Tolerations, t) {
			p.tolerations = append(p.tolerations, t)
		}
	}
	for _, t := range wanted {
		if !contains(p.tolerations, t) {
			p.tolerations = append(p.tolerations, t)
		}
	}
	return p, nil
}

// patch returns the operations that turn the pod's placement into p, and none where
// it is right already. Operations name single keys and items, so that what this
// build does not know stays as it is.
func patch(pod *Pod, p placement) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	switch {
	case p.class == nil && pod.RuntimeClassName != "":
		ops = append(ops, remove("/spec/runtimeClassName"))
	case p.class != nil && pod.RuntimeClassName != p.class.Name:
		ops = append(ops, add("/spec/runtimeClassName", p.class.Name))
	}
	ops = append(ops, patchMap("/spec/nodeSelector", pod.NodeSelector, p.nodeSelector)...)
	ops = append(ops, patchTolerations(pod.Tolerations, p.tolerations)...)
	switch {
	case len(p.overhead) == 0 && pod.Overhead != nil:
		ops = append(ops, remove("/spec/overhead"))
	case len(p.overhead) > 0 && !equality.Semantic.DeepEqual(pod.Overhead, p.overhead):
		ops = append(ops, add("/spec/overhead", p.overhead))
	}
	return ops
}

// patchAnnotations makes the pod's annotations say what wanted says, and takes one away.
func patchAnnotations(pod *Pod, wanted map[string]string, unwanted string) []jsonpatch.Operation {
	all := maps.Clone(pod.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	delete(all, unwanted)
	return patchMap("/metadata/annotations", pod.Annotations, all)
}

// patchMap adds to a map that the object lacks as a whole, and key by key to one
// that it has.
func patchMap(path string, from, to map[string]string) []jsonpatch.Operation {
	if from == nil {
		if len(to) == 0 {
			return nil
		}
		return []jsonpatch.Operation{add(path, to)}
	}
	var ops []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[key]; !stays {
			ops = append(ops, remove(path+"/"+escape(key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if !has(from, key, to[key]) {
			ops = append(ops, add(path+"/"+escape(key), to[key]))
		}
	}
	return ops
}

// patchTolerations removes by index from the end, so that earlier indexes stay
// true, and appends.
func patchTolerations(from, to []corev1.Toleration) []jsonpatch.Operation {
	const path = "/spec/tolerations"
	if from == nil {
		if len(to) == 0 {
			return nil
		}
		return []jsonpatch.Operation{add(path, to)}
	}
	var ops []jsonpatch.Operation
	for i, t := range slices.Backward(from) {
		if !contains(to, t) {
			ops = append(ops, remove(path+"/"+strconv.Itoa(i)))
		}
	}
	for _, t := range to {
		if !contains(from, t) {
			ops = append(ops, add(path+"/-", t))
		}
	}
	return ops
}

func add(path string, value any) jsonpatch.Operation {
	return jsonpatch.NewOperation("add", path, value)
}

func remove(path string) jsonpatch.Operation { return jsonpatch.NewOperation("remove", path, nil) }

// escape writes a map's key as a JSON pointer token (RFC 6901).
func escape(key string) string { return pointer.Replace(key) }

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func has(m map[string]string, key, value string) bool {
	v, ok := m[key]
	return ok && v == value
}

func contains(tolerations []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(other corev1.Toleration) bool { return equality.Semantic.DeepEqual(other, t) })
}
