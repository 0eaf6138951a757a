package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

func TestSubresourcesGoThroughUntouched(t *testing.T) {
	t.Parallel()
	limit := func(quantity string) trait {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
		}
	}
	n := untrusted(t)
	created := n.admitted(newPod(limit("10m")))
	n.scheduled(created)
	pods := clients.CoreV1().Pods(n.name)

	tests := map[string]struct {
		change trait
		send   func(*corev1.Pod) (*corev1.Pod, error)
		done   func(*corev1.Pod) bool
	}{
		"resize": {
			change: limit("20m"),
			send: func(p *corev1.Pod) (*corev1.Pod, error) {
				return pods.UpdateResize(t.Context(), p.Name, p, metav1.UpdateOptions{})
			},
			done: func(p *corev1.Pod) bool {
				return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() == 20
			},
		},
		"ephemeralcontainers": {
			change: func(p *corev1.Pod) {
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/image"},
				}}
			},
			send: func(p *corev1.Pod) (*corev1.Pod, error) {
				return pods.UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{})
			},
			done: func(p *corev1.Pod) bool { return len(p.Spec.EphemeralContainers) == 1 },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var updated *corev1.Pod
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				current, err := pods.Get(t.Context(), created.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				test.change(current)
				updated, err = test.send(current)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if !test.done(updated) {
				t.Error("the change is not stored")
			}
			wantPlacement(t, updated, "gvisor")
			if diff := cmp.Diff(created.Annotations, updated.Annotations); diff != "" {
				t.Errorf("annotations (-created +updated):\n%s", diff)
			}
		})
	}
}
