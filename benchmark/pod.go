package benchmark

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// The labels of each pod, of which [ManagedBy] is on those of every benchmark and the
// instance on those of one. They are Kubernetes' recommended ones.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "runtimeclass-router-bench"
	instanceLabel  = "app.kubernetes.io/instance"
)

// Selector finds every pod of this benchmark.
func (p *Plan) Selector() string {
	return labels.SelectorFromSet(labels.Set{ManagedByLabel: ManagedBy, instanceLabel: p.Run}).String()
}

// container is the name of the container that is timed. Others that a webhook adds are
// not looked at.
const container = "benchmark"

// grace is what a pod gets that is deleted while it runs: nothing of it is wanted.
const grace = 1

// Pod is the pod of a sample. It asks for as little as the strictest of Kubernetes' pod
// security standards, and ends by itself should nobody be there to delete it.
func (p *Plan) Pod(s *Sample) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      s.Pod,
			Namespace: p.Namespace,
			Labels:    map[string]string{ManagedByLabel: ManagedBy, instanceLabel: p.Run},
		},
		Spec: corev1.PodSpec{
			RuntimeClassName:              ptr.To(s.Class),
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr.To(int64(p.Timeout / time.Second)),
			TerminationGracePeriodSeconds: ptr.To[int64](grace),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser:      ptr.To(p.RunAsUser),
				RunAsNonRoot:   ptr.To(p.RunAsUser != 0),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:            container,
				Image:           p.Image,
				ImagePullPolicy: p.PullPolicy,
				Command:         s.Workload.arguments(),

				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,

				Resources: corev1.ResourceRequirements{Requests: p.Requests, Limits: p.Limits},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
