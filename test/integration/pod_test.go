package integration

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// trait changes one thing of a pod.
type trait func(*corev1.Pod)

// newPod returns a pod with one container, no more than the API asks for.
func newPod(traits ...trait) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
	for _, apply := range traits {
		apply(pod)
	}
	return pod
}

func class(name string) trait {
	return func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To(name) }
}

// labelled takes "key=value"; a key without a prefix gets ours.
func labelled(labels ...string) trait {
	return func(p *corev1.Pod) {
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			if !strings.Contains(key, "/") {
				key = catalog.Prefix + key
			}
			metav1.SetMetaDataLabel(&p.ObjectMeta, key, value)
		}
	}
}

func annotated(key, value string) trait {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func selecting(key, value string) trait {
	return func(p *corev1.Pod) {
		if p.Spec.NodeSelector == nil {
			p.Spec.NodeSelector = map[string]string{}
		}
		p.Spec.NodeSelector[key] = value
	}
}

func tolerating(t corev1.Toleration) trait {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func overhead(cpu, memory string) trait {
	return func(p *corev1.Pod) {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
}

func hostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }

func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
}

// blockDevice is what gVisor cannot have and Kata can.
func blockDevice(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
	}})
	p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}
}

func classOf(pod *corev1.Pod) string { return ptr.Deref(pod.Spec.RuntimeClassName, "") }
