package informers

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strip keeps of an object what the catalog reads. It is called before an object is
// stored, so that a cluster's size costs little memory.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *nodev1.RuntimeClass:
		o.ManagedFields, o.Annotations = nil, nil
	case *corev1.Node:
		return stripNode(o), nil
	case *metav1.PartialObjectMetadata:
		o.ObjectMeta = metav1.ObjectMeta{
			Name: o.Name, ResourceVersion: o.ResourceVersion, Labels: o.Labels, Annotations: o.Annotations,
		}
	}
	return object, nil
}

func stripNode(node *corev1.Node) *corev1.Node {
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status:     corev1.NodeStatus{RuntimeHandlers: node.Status.RuntimeHandlers},
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			stripped.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return stripped
}

// same reports whether two stripped objects differ in nothing that is read: a
// node's status is written every few minutes with nothing new in it.
func same(before, after any) bool {
	a, aOK := before.(*corev1.Node)
	b, bOK := after.(*corev1.Node)
	if !aOK || !bOK {
		return false
	}
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status, b.Status)
}
