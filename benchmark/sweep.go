package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// sweepTimeout bounds the wait until nothing is left. A node may take a moment to let go
// of a pod.
const sweepTimeout = time.Minute

// sweep deletes what is left of a plan's pods, by their label, and returns when all are
// gone. The error names those that are not.
func (r *Runner) sweep(ctx context.Context, p *Plan) error {
	pods := r.Client.CoreV1().Pods(p.Namespace)
	var left []corev1.Pod
	refused := map[string]error{}
	var listed error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, sweepTimeout, true, func(ctx context.Context) (bool, error) {
		var list *corev1.PodList
		if list, listed = pods.List(ctx, metav1.ListOptions{LabelSelector: p.Selector()}); listed == nil {
			left = list.Items
		}
		for i := range left {
			if name := left[i].Name; left[i].DeletionTimestamp == nil {
				if refused[name] = pods.Delete(ctx, name, metav1.DeleteOptions{}); apierrors.IsNotFound(refused[name]) {
					delete(refused, name)
				}
			}
		}
		return listed == nil && len(left) == 0, nil
	})
	if err == nil {
		return nil
	}
	errs := []error{fmt.Errorf("pods may be left: kubectl delete pods --namespace %s --selector %s", p.Namespace, p.Selector())}
	if listed != nil {
		errs = append(errs, fmt.Errorf("list pods: %w", listed))
	}
	for i := range left {
		switch name := left[i].Name; {
		case refused[name] != nil:
			errs = append(errs, fmt.Errorf("delete pod %s: %w", name, refused[name]))
		default:
			errs = append(errs, fmt.Errorf("pod %s is being deleted, and node %q has not let go of it", name, left[i].Spec.NodeName))
		}
	}
	return errors.Join(errs...)
}
