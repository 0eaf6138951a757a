package chart

import (
	"context"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitStep is how often it is looked whether something is there.
const waitStep = 100 * time.Millisecond

// helmUninstall runs it with its hook. There is no kubelet: the hook's Job is run here, as
// a process with the command, and the rights, of the hook's ServiceAccount.
func (c *cluster) helmUninstall(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- c.runHook(ctx, t) }()
	_, err := c.Helm(t.Context(), "uninstall", release, "--namespace", namespace, "--timeout", "1m")
	cancel()
	return errors.Join(<-ran, err)
}

// runHook waits for the hook's Job and does what the kubelet and the Job's controller would.
func (c *cluster) runHook(ctx context.Context, t *testing.T) error {
	t.Helper()
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: namespace, Name: release + "-cleanup"}
	if err := wait.PollUntilContextTimeout(ctx, waitStep, patience, true, func(ctx context.Context) (bool, error) {
		return c.Get(ctx, key, job) == nil, nil
	}); err != nil {
		return err
	}
	pod := job.Spec.Template.Spec
	kubeconfig, err := c.AddUserKubeconfig("system:serviceaccount:"+namespace+":"+pod.ServiceAccountName, "system:authenticated")
	if err != nil {
		return err
	}
	out, err := command(ctx, t, kubeconfig, pod.Containers[0].Args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		return err
	}
	now := metav1.Now()
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	return c.Status().Update(ctx, job)
}
