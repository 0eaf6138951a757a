package webhook

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// admit does what the API server's RuntimeClass plugin does to a pod before webhooks
// and once more after them (plugin/pkg/admission/runtimeclass in Kubernetes): it looks
// the class up, merges its scheduling, sets its overhead, and refuses a contradiction.
func admit(c *catalog.Catalog, spec *corev1.PodSpec) error {
	if spec.RuntimeClassName == nil {
		return nil
	}
	class := c.RuntimeClass(*spec.RuntimeClassName)
	if class == nil {
		return fmt.Errorf("runtime class %q not found", *spec.RuntimeClassName)
	}
	if len(class.Overhead) > 0 {
		if len(spec.Overhead) > 0 && !equality.Semantic.DeepEqual(spec.Overhead, class.Overhead) {
			return fmt.Errorf("overhead %v does not match that of class %s, %v", spec.Overhead, class.Name, class.Overhead)
		}
		spec.Overhead = maps.Clone(class.Overhead)
	}
	for key, value := range class.NodeSelector {
		if own, ok := spec.NodeSelector[key]; ok && own != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod has %s", key, value, own)
		}
	}
	if spec.NodeSelector == nil && len(class.NodeSelector) > 0 {
		spec.NodeSelector = map[string]string{}
	}
	maps.Copy(spec.NodeSelector, class.NodeSelector)
	for _, t := range class.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(own corev1.Toleration) bool { return supersedes(own, t) }) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	return nil
}

// validate is the plugin's second part, which runs when nothing changes any more.
func validate(c *catalog.Catalog, spec *corev1.PodSpec) error {
	var want corev1.ResourceList
	if spec.RuntimeClassName != nil {
		if class := c.RuntimeClass(*spec.RuntimeClassName); class != nil {
			want = class.Overhead
		}
	}
	if !equality.Semantic.DeepEqual(want, spec.Overhead) {
		return fmt.Errorf("overhead %v is not that of the class, %v", spec.Overhead, want)
	}
	return nil
}

// supersedes is pkg/util/tolerations of Kubernetes: the class's toleration is merged
// only where the pod has none that covers it.
func supersedes(own, class corev1.Toleration) bool {
	if equality.Semantic.DeepEqual(own, class) {
		return true
	}
	if own.Key != class.Key && (own.Key != "" || own.Operator != corev1.TolerationOpExists) {
		return false
	}
	if own.Effect != class.Effect && own.Effect != "" {
		return false
	}
	if own.TolerationSeconds != nil {
		return false
	}
	return own.Operator == corev1.TolerationOpExists || own.Operator == class.Operator && own.Value == class.Value
}
