package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Paths of the endpoints.
const (
	MutatePodPath        = "/mutate-pod"
	ValidatePodPath      = "/validate-pod"
	ValidateWorkloadPath = "/validate-workload"
)

// NamespaceGetter finds a namespace's metadata. An error means that it is not known
// for certain; the pod is then refused as retryable, never given a default.
type NamespaceGetter interface {
	Namespace(ctx context.Context, name string) (*catalog.Namespace, error)
}

// Options are what the handlers need.
type Options struct {
	Router     *Router
	Namespaces NamespaceGetter
	// Deadline bounds one decision. It lies below the timeout of the webhook
	// configuration (3 s as shipped), so that the API server gets an answer that
	// says what happened rather than a timeout that does not.
	Deadline time.Duration
	Metrics  *Metrics
	Log      logr.Logger
	// Now is the clock; a policy is told its UTC day.
	Now func() time.Time
	// Observers are told of every decision on a pod. Without one nothing is logged of it.
	Observers []Observer
}

// Handler answers the reviews of [MutatePodPath].
type Handler struct{ Options }

var _ admission.Handler = (*Handler)(nil)

// NewHandler returns a handler.
func NewHandler(options Options) *Handler { return &Handler{Options: options} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create || request.SubResource != "" || mirror(ctx, &request) {
		// The runtime of a pod is settled when it is created. A class patch on
		// anything later is refused by the API server, with the caller's own change.
		return admission.Allowed("")
	}
	ctx, cancel := h.bounded(ctx)
	defer cancel()
	d := &Decision{Path: MutatePodPath, Request: &request, Started: h.Now()}
	d.Input, d.Err = h.input(ctx, &request)
	if d.Err == nil {
		d.Route, d.Err = h.Router.Route(ctx, d.Input)
	}
	d.Elapsed = h.Now().Sub(d.Started)
	h.Metrics.observe(&d.Route, d.Err, d.Elapsed)
	return h.answer(ctx, d)
}

// bounded is the context of one decision. The server cancels the context of requests
// in flight when it is told to stop; what was accepted is answered all the same,
// within the deadline.
func (o *Options) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.Deadline)
}

// input looks the namespace up, by the request: an object that a controller makes has
// no name yet, and before Kubernetes 1.24 no namespace either.
func (o *Options) input(ctx context.Context, request *admission.Request) (policies.Input, error) {
	namespace, err := o.Namespaces.Namespace(ctx, request.Namespace)
	if err != nil {
		return policies.Input{}, &lookupError{namespace: request.Namespace, err: err}
	}
	pod, err := objectPod(ctx, request.Object.Raw)
	if err != nil {
		return policies.Input{}, err
	}
	return policies.Input{
		Request: policies.Request{
			Operation:   string(request.Operation),
			SubResource: request.SubResource,
			Namespace:   request.Namespace,
			Name:        request.Name,
			UserInfo:    request.UserInfo,
			DryRun:      request.DryRun != nil && *request.DryRun,
			Date:        o.Now().UTC().Format(time.DateOnly),
		},
		Namespace: *namespace,
		Pod:       pod,
	}, nil
}

// mirror reports whether a node announces a static pod that it runs already. The
// annotation alone proves nothing: anyone can write it.
func mirror(ctx context.Context, request *admission.Request) bool {
	if !slices.Contains(request.UserInfo.Groups, nodesGroup) {
		return false
	}
	pod, err := objectPod(ctx, request.Object.Raw)
	if err != nil {
		return false
	}
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// nodesGroup is the group that the API server gives to kubelets.
const nodesGroup = "system:nodes"
