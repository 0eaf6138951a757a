package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// Pod is what routing reads of a pod. Everything else stays in the raw object: a
// patch built on it cannot lose a field that this build's types do not know.
type Pod struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   *struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec *struct {
		RuntimeClassName   string              `json:"runtimeClassName"`
		NodeSelector       map[string]string   `json:"nodeSelector"`
		Tolerations        []corev1.Toleration `json:"tolerations"`
		Overhead           corev1.ResourceList `json:"overhead"`
		ServiceAccountName string              `json:"serviceAccountName"`
		NodeName           string              `json:"nodeName"`
		SchedulerName      string              `json:"schedulerName"`
		Containers         []struct{}          `json:"containers"`
	} `json:"spec"`
}

// ErrUndecodable marks a review or a pod that cannot be read.
var ErrUndecodable = errors.New("undecodable")

func decodePod(raw json.RawMessage) (*Pod, error) {
	var p Pod
	// Keys are told apart by their case, as the API server does.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &p); err != nil {
		return nil, fmt.Errorf("%w pod: %w", ErrUndecodable, err)
	}
	switch {
	case p.APIVersion != "v1" || p.Kind != "Pod":
		return nil, fmt.Errorf("%w pod: apiVersion %q, kind %q is no v1 Pod", ErrUndecodable, p.APIVersion, p.Kind)
	case p.Metadata == nil:
		return nil, fmt.Errorf("%w pod: field metadata is missing", ErrUndecodable)
	case p.Spec == nil:
		return nil, fmt.Errorf("%w pod: field spec is missing", ErrUndecodable)
	case len(p.Spec.Containers) == 0:
		return nil, fmt.Errorf("%w pod: field spec.containers is missing or empty", ErrUndecodable)
	}
	return &p, nil
}
