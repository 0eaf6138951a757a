package controlplane

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNode creates a Node that no kubelet stands behind, for the scheduler to bind pods to. What
// the Node says is kept, status.runtimeHandlers for one; what it leaves open is filled in: a Ready
// condition that is true, and capacity and allocatable of 16 CPUs, 64Gi of memory and 110 pods. As
// by [client.Client].Create, node is updated to what the API server stored.
//
// A Node that says that it is not ready keeps the taint node.kubernetes.io/not-ready, which the
// admission plugin TaintNodesByCondition adds to every new Node. A ready one loses it here, as it
// does in a cluster by the node lifecycle controller.
func CreateNode(ctx context.Context, c client.Client, node *corev1.Node) error {
	fillStatus(&node.Status)
	tainted := func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady }
	wanted := slices.ContainsFunc(node.Spec.Taints, tainted)
	// The API server takes a status at creation, unlike for most kinds: it is how kubelets register.
	if err := c.Create(ctx, node); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	if wanted || !ready(node.Status) {
		return nil
	}
	created := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, tainted)
	if err := c.Patch(ctx, node, client.MergeFrom(created)); err != nil {
		return fmt.Errorf("remove taint %s from node %s: %w", corev1.TaintNodeNotReady, node.Name, err)
	}
	return nil
}

func fillStatus(status *corev1.NodeStatus) {
	if len(status.Capacity) == 0 {
		status.Capacity = status.Allocatable.DeepCopy()
	}
	if len(status.Capacity) == 0 {
		status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("16"),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
	}
	if len(status.Allocatable) == 0 {
		status.Allocatable = status.Capacity.DeepCopy()
	}
	if !slices.ContainsFunc(status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady
	}) {
		now := metav1.Now()
		status.Conditions = append(status.Conditions, corev1.NodeCondition{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			Reason:             "NoKubelet",
			Message:            "declared ready by package controlplane",
			LastHeartbeatTime:  now,
			LastTransitionTime: now,
		})
	}
}

func ready(status corev1.NodeStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
