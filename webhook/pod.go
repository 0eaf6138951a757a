package webhook

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Pod is what routing reads of a pod. Everything else stays in the raw object: a
// patch built on it cannot lose a field that this build's types do not know.
type Pod struct {
	Labels      map[string]string
	Annotations map[string]string

	RuntimeClassName   string
	NodeSelector       map[string]string
	Tolerations        []corev1.Toleration
	Overhead           corev1.ResourceList
	ServiceAccountName string
	NodeName           string
	SchedulerName      string
}

// ErrUndecodable marks a review or a pod that cannot be read.
var ErrUndecodable = errors.New("undecodable")

// readPod splits a pod for the policy; [decodePod] decodes of it what routing reads.
func readPod(raw []byte) (*policies.Pod, error) {
	pod, err := policies.ReadPod(raw)
	if err != nil {
		return nil, fmt.Errorf("%w %w", ErrUndecodable, err)
	}
	return pod, nil
}

func decodePod(p *policies.Pod) (*Pod, error) {
	var apiVersion, kind string
	if err := errors.Join(p.Decode("apiVersion", &apiVersion), p.Decode("kind", &kind)); err != nil {
		return nil, fmt.Errorf("%w pod: %w", ErrUndecodable, err)
	}
	switch {
	case apiVersion != "v1" || kind != "Pod":
		return nil, fmt.Errorf("%w pod: apiVersion %q, kind %q is no v1 Pod", ErrUndecodable, apiVersion, kind)
	case !p.Has("metadata"):
		return nil, fmt.Errorf("%w pod: field metadata is missing", ErrUndecodable)
	case !p.Has("spec"):
		return nil, fmt.Errorf("%w pod: field spec is missing", ErrUndecodable)
	case !p.HasContainers():
		return nil, fmt.Errorf("%w pod: field spec.containers is missing or empty", ErrUndecodable)
	}
	pod := &Pod{Labels: p.Labels, Annotations: p.Annotations}
	for _, field := range []struct {
		name string
		into any
	}{
		{"runtimeClassName", &pod.RuntimeClassName},
		{"nodeSelector", &pod.NodeSelector},
		{"tolerations", &pod.Tolerations},
		{"overhead", &pod.Overhead},
		{"serviceAccountName", &pod.ServiceAccountName},
		{"nodeName", &pod.NodeName},
		{"schedulerName", &pod.SchedulerName},
	} {
		if err := p.DecodeSpec(field.name, field.into); err != nil {
			return nil, fmt.Errorf("%w pod: spec.%s: %w", ErrUndecodable, field.name, err)
		}
	}
	return pod, nil
}
