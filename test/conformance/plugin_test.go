package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// classed is what the API server's RuntimeClass admission plugin reads of a pod.
type classed struct {
	RuntimeClassName *string              `json:"runtimeClassName"`
	NodeSelector     map[string]string    `json:"nodeSelector"`
	Tolerations      []corev1.Toleration  `json:"tolerations"`
	Overhead         *corev1.ResourceList `json:"overhead"`
}

// admitClass does what the plugin does before webhooks and, if one changed the pod,
// after them: it merges the class into the pod, or refuses. An empty name is let
// through, for what a webhook would make of it where the plugin is off.
//
// See https://github.com/kubernetes/kubernetes/blob/v1.37.2/plugin/pkg/admission/runtimeclass/admission.go.
func admitClass(classes *catalog.Catalog, pod json.RawMessage) (json.RawMessage, error) {
	spec, class, err := readClass(classes, pod)
	if err != nil || class == nil {
		return pod, err
	}
	changed := map[string]any{}
	if class.Overhead != nil {
		if spec.Overhead != nil && !equality.Semantic.DeepEqual(*spec.Overhead, class.Overhead) {
			return nil, errors.New("pod's overhead doesn't match RuntimeClass's defined overhead")
		}
		changed["overhead"] = class.Overhead
	}
	if len(class.NodeSelector) > 0 {
		selector := map[string]string{}
		maps.Copy(selector, spec.NodeSelector)
		for key, value := range class.NodeSelector {
			if own, ok := selector[key]; ok && own != value {
				return nil, fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
			}
			selector[key] = value
		}
		changed["nodeSelector"] = selector
	}
	if tolerations := mergeTolerations(slices.Clone(spec.Tolerations), class.Tolerations); len(tolerations) > 0 {
		changed["tolerations"] = tolerations
	}
	return setSpec(pod, changed)
}

// mergeTolerations appends those that are not there yet.
func mergeTolerations(tolerations, others []corev1.Toleration) []corev1.Toleration {
	for _, other := range others {
		if !slices.ContainsFunc(tolerations, func(own corev1.Toleration) bool { return equality.Semantic.DeepEqual(own, other) }) {
			tolerations = append(tolerations, other)
		}
	}
	return tolerations
}

// validateClass does what the plugin does after all mutation.
func validateClass(classes *catalog.Catalog, pod json.RawMessage) error {
	spec, class, err := readClass(classes, pod)
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if spec.Overhead == nil || !equality.Semantic.DeepEqual(*spec.Overhead, class.Overhead) {
			return errors.New("pod's overhead doesn't match RuntimeClass's defined overhead")
		}
	case spec.Overhead != nil:
		return errors.New("pod overhead set without corresponding RuntimeClass defined overhead")
	}
	return nil
}

func readClass(classes *catalog.Catalog, pod json.RawMessage) (classed, *catalog.RuntimeClass, error) {
	var object struct{ Spec classed }
	if err := json.Unmarshal(pod, &object); err != nil {
		return classed{}, nil, err
	}
	name := object.Spec.RuntimeClassName
	if name == nil || *name == "" {
		return object.Spec, nil, nil
	}
	class := classes.RuntimeClass(*name)
	if class == nil {
		return object.Spec, nil, fmt.Errorf("RuntimeClass %q not found", *name)
	}
	return object.Spec, class, nil
}

// setSpec sets fields of a pod's spec, and leaves what no type knows as it is.
func setSpec(pod json.RawMessage, fields map[string]any) (json.RawMessage, error) {
	var object map[string]any
	if err := json.Unmarshal(pod, &object); err != nil {
		return nil, err
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return nil, errors.New("pod without a spec")
	}
	maps.Copy(spec, fields)
	return json.Marshal(object)
}
