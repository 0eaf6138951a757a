package stack

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// Apply creates the objects of some manifests, in their order. Nodes are created as
// a kubelet would register them; namespaces are usable when it returns.
func (s *Stack) Apply(ctx context.Context, paths ...string) error {
	manifests, err := catalog.ReadManifests(paths, nil)
	if err != nil {
		return err
	}
	for i := range manifests.Documents {
		if err := s.Create(ctx, s.Client, &manifests.Documents[i]); err != nil {
			return err
		}
	}
	return nil
}

// Create creates one document's object with a client of the caller's.
func (s *Stack) Create(ctx context.Context, c client.Client, document *catalog.Document) error {
	var err error
	switch object := document.Object.(type) {
	case *corev1.Node:
		err = controlplane.CreateNode(ctx, c, object)
	case *corev1.Namespace:
		err = controlplane.CreateNamespace(ctx, c, object)
	default:
		raw := &unstructured.Unstructured{}
		if err = raw.UnmarshalJSON(document.Raw); err == nil {
			err = c.Create(ctx, raw)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: document %d: create %s: %w", document.File, document.Index, document.GVK.Kind, err)
	}
	return nil
}

// CreateNamespace creates a namespace that pods can be created in at once.
func (s *Stack) CreateNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	return controlplane.CreateNamespace(ctx, s.Client, namespace)
}

// Denied reports whether an error is the webhook's own refusal.
func Denied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "runtimeclass-router:")
}
