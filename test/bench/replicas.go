package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// replicas has the real controllers create the pods of workloads, one after the other,
// and counts how many decisions the product made for them.
func (h *harness) replicas(ctx context.Context, r *results.Results) error {
	namespace := variantOf("router").namespace()
	for _, w := range workloads(namespace, int32(h.Replicas)) {
		h.say("%s of %d", w.kind, h.Replicas)
		counted, err := h.replicasOf(ctx, w, namespace)
		if err != nil {
			return fmt.Errorf("%s: %w", w.kind, err)
		}
		r.Replicas = append(r.Replicas, counted)
	}
	return nil
}

func (h *harness) replicasOf(ctx context.Context, w *workload, namespace string) (*results.Workload, error) {
	before, err := h.router.counts(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := h.Client.Create(ctx, w.object); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods = corev1.PodList{}
		err := h.Client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) == h.Replicas, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for its pods: %w (there are %d)", err, len(pods.Items))
	}
	found := &results.Workload{Kind: w.kind, Pods: len(pods.Items), CreatedWithin: time.Since(began)}
	after, err := h.router.counts(ctx)
	if err != nil {
		return nil, err
	}
	counted := after.minus(before)
	found.Calls, found.Evaluated, found.Remembered, found.Counted = counted.decisions, counted.evaluated, counted.remembered, counted.counted
	for i := range pods.Items {
		var c created
		spec := &pods.Items[i].Spec
		c.Spec.RuntimeClassName, c.Spec.NodeSelector, c.Spec.Tolerations, c.Spec.Overhead = spec.RuntimeClassName, spec.NodeSelector, spec.Tolerations, spec.Overhead
		if err := c.check(true); err != nil {
			return nil, fmt.Errorf("pod %s: %w", pods.Items[i].Name, err)
		}
		found.Routed++
	}
	if err := h.Client.Delete(ctx, w.object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return nil, err
	}
	return found, h.deletePods(ctx, namespace)
}

// workload is an object whose controller creates pods.
type workload struct {
	kind   string
	object client.Object
}

func workloads(namespace string, replicas int32) []*workload {
	pod := benchPod()
	meta := metav1.ObjectMeta{Name: "shop", Namespace: namespace}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "shop"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []*workload{
		{"Deployment", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selector, Template: template,
		}}},
		{"StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selector, Template: template,
			// No pod becomes ready here, and the others would wait for the first.
			PodManagementPolicy: appsv1.ParallelPodManagement,
		}}},
		{"indexed Job", &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
			Parallelism: &replicas, Completions: &replicas, Template: once, CompletionMode: ptr.To(batchv1.IndexedCompletion),
		}}},
	}
}
