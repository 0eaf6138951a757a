package informers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Read takes a live cluster's catalog and namespaces once.
func Read(ctx context.Context, config *rest.Config) (*catalog.Catalog, map[string]*catalog.Namespace, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	classes, err := client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list runtime classes: %w", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list namespaces: %w", err)
	}
	namespaces := make(map[string]*catalog.Namespace, len(list.Items))
	for _, ns := range list.Items {
		namespaces[ns.Name] = &catalog.Namespace{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}
	}
	return catalog.Build(pointers[nodev1.RuntimeClass](classes.Items), pointers[corev1.Node](nodes.Items)), namespaces, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
