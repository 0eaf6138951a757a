package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNamespace creates the namespace and waits for its default ServiceAccount, without which
// pods cannot be created in it. It needs the controller manager; in a control plane without one
// pods need no ServiceAccount, and the namespace can be created like any object.
func CreateNamespace(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	if err := c.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return waitServiceAccount(ctx, c, namespace.Name)
}

func waitServiceAccount(ctx context.Context, c client.Client, namespace string) error {
	key := types.NamespacedName{Namespace: namespace, Name: "default"}
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = c.Get(ctx, key, &corev1.ServiceAccount{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the default ServiceAccount of namespace %s: %w (last answer: %w)", namespace, err, last)
	}
	return nil
}
