package integration

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A controller's pods have no name yet, and their namespace stands in the request.
func TestPodsOfControllers(t *testing.T) {
	t.Parallel()
	appLabels := map[string]string{"example.com/app": "app"}
	template := func(restart corev1.RestartPolicy, traits ...trait) corev1.PodTemplateSpec {
		pod := newPod(traits...)
		pod.Spec.RestartPolicy = restart
		labels := map[string]string{"example.com/app": "app"}
		for key, value := range pod.Labels {
			labels[key] = value
		}
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}
	}
	tests := map[string]struct {
		create func(ctx context.Context, namespace string) error
		class  string
	}{
		"Deployment": {func(ctx context.Context, namespace string) error {
			_, err := clients.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "app"},
				Spec: appsv1.DeploymentSpec{
					Replicas: ptr.To[int32](2),
					Selector: &metav1.LabelSelector{MatchLabels: appLabels},
					Template: template(corev1.RestartPolicyAlways),
				},
			}, metav1.CreateOptions{})
			return err
		}, "gvisor"},
		"Job": {func(ctx context.Context, namespace string) error {
			_, err := clients.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "app"},
				Spec: batchv1.JobSpec{
					Completions: ptr.To[int32](2),
					Parallelism: ptr.To[int32](2),
					Template:    template(corev1.RestartPolicyNever, labelled("workload-profile=syscall-heavy"), class("heavy")),
				},
			}, metav1.CreateOptions{})
			return err
		}, "kata-fc"},
	}
	for kind, test := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := untrusted(t)
			if err := test.create(t.Context(), n.name); err != nil {
				t.Fatal(err)
			}
			var pods *corev1.PodList
			poll(t, func(ctx context.Context) (done bool, err error) {
				pods, err = clients.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{})
				return err == nil && len(pods.Items) == 2, err
			}, func() string { return "the controller's pods do not appear" })
			for i := range pods.Items {
				wantPlacement(t, &pods.Items[i], test.class)
				wantPatched(t, &pods.Items[i], "untrusted")
			}
		})
	}
}
