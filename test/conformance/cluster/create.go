package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
)

// emptyClass is how the API server refuses a runtimeClassName that is an empty string:
// as an internal error of the RuntimeClass plugin.
const emptyClass = "resource name may not be empty"

// Namespaces are where a pod is to be created: both teams', or the one that it belongs to.
func Namespaces(s *conformance.Shape) []string {
	if s.Namespace != "" {
		return []string{s.Namespace}
	}
	return []string{conformance.Untrusted, conformance.Trusted}
}

// Prepare creates what has to exist before pods of the shapes can: the service accounts
// that they name.
func Prepare(ctx context.Context, c client.Client, shapes []conformance.Shape) error {
	wanted := map[client.ObjectKey]bool{}
	for i := range shapes {
		var pod corev1.Pod
		if err := json.Unmarshal(shapes[i].Raw, &pod); err != nil {
			return fmt.Errorf("shape %s: %w", shapes[i].Name, err)
		}
		for _, namespace := range Namespaces(&shapes[i]) {
			if name := pod.Spec.ServiceAccountName; name != "" {
				wanted[client.ObjectKey{Namespace: namespace, Name: name}] = true
			}
		}
	}
	var errs []error
	for key := range maps.Keys(wanted) {
		errs = append(errs, c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	}
	return errors.Join(errs...)
}

// Create creates the pod of a shape in a namespace, and says what became of it. With
// client.DryRunAll it is not stored, and judged all the same.
func Create(ctx context.Context, c client.Client, s *conformance.Shape, namespace string, options ...client.CreateOption) (conformance.Outcome, *corev1.Pod, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(s.Raw); err != nil {
		return conformance.Outcome{}, nil, fmt.Errorf("shape %s: %w", s.Name, err)
	}
	object.SetNamespace(namespace)
	asked, _, err := unstructured.NestedString(object.Object, "spec", "runtimeClassName")
	if err != nil {
		return conformance.Outcome{}, nil, fmt.Errorf("shape %s: %w", s.Name, err)
	}
	outcome := conformance.Outcome{Asked: asked}
	if err := c.Create(ctx, object, options...); err != nil {
		if !refused(err) {
			return outcome, nil, fmt.Errorf("create shape %s in %s: %w", s.Name, namespace, err)
		}
		outcome.Denied, outcome.Message = true, err.Error()
		return outcome, nil, nil
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		return outcome, nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return outcome, nil, err
	}
	if pod.Spec.RuntimeClassName != nil {
		outcome.Class = *pod.Spec.RuntimeClassName
	}
	outcome.Patched = outcome.Class != asked || pod.Annotations[catalog.AnnotationTrust] != ""
	return outcome, pod, nil
}

// refused tells a pod that is refused from an API server that is in trouble.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError || strings.Contains(err.Error(), emptyClass)
}

// Plain returns those shapes that are pods.
func Plain() ([]conformance.Shape, error) {
	shapes, err := conformance.Shapes()
	if err != nil {
		return nil, err
	}
	var pods []conformance.Shape
	for _, s := range shapes {
		if !s.Review {
			pods = append(pods, s)
		}
	}
	return pods, nil
}
