package webhook

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// MutatePodPath is the path of the endpoint that mutates pods.
const MutatePodPath = "/mutate-pod"

// NamespaceGetter finds a namespace's metadata. An error means that it is not known
// for certain; the pod is then refused as retryable, never given a default.
type NamespaceGetter interface {
	Namespace(ctx context.Context, name string) (*catalog.Namespace, error)
}

// Options are what a [Handler] needs.
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
}

// Handler answers the reviews of [MutatePodPath].
type Handler struct{ Options }

var _ admission.Handler = (*Handler)(nil)

// NewHandler returns a handler.
func NewHandler(options Options) *Handler { return &Handler{Options: options} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create || request.SubResource != "" {
		// The runtime of a pod is settled when it is created. A class patch on
		// anything later is refused by the API server, with the caller's own change.
		return admission.Allowed("")
	}
	// The server cancels the context of requests in flight when it is told to stop.
	// What was accepted is answered all the same, within the deadline.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Deadline)
	defer cancel()
	started := h.Now()
	route, err := h.route(ctx, &request)
	h.Metrics.observe(&route, err, h.Now().Sub(started))
	h.log(&request, &route, err)
	return respond(&route, err)
}

func (h *Handler) route(ctx context.Context, request *admission.Request) (Route, error) {
	namespace, err := h.Namespaces.Namespace(ctx, request.Namespace)
	if err != nil {
		return Route{}, &lookupError{namespace: request.Namespace, err: err}
	}
	return h.Router.Route(ctx, policies.Input{
		Request: policies.Request{
			Operation:   string(request.Operation),
			SubResource: request.SubResource,
			Namespace:   request.Namespace,
			Name:        request.Name,
			UserInfo:    request.UserInfo,
			DryRun:      request.DryRun != nil && *request.DryRun,
			Date:        h.Now().UTC().Format(time.DateOnly),
		},
		Namespace: *namespace,
		Pod:       request.Object.Raw,
	})
}

// log writes one line a decision: errors always, others at verbosity 1. A pod is
// never logged: its environment holds secrets.
func (h *Handler) log(request *admission.Request, route *Route, err error) {
	log := h.Log.WithValues("requestID", request.UID, "namespace", request.Namespace, "name", request.Name,
		"mode", route.Mode, "policyRevision", route.PolicyRevision)
	if err != nil {
		log.Error(err, "admission failed", "kind", classify(err).metric)
		return
	}
	log.V(1).Info("decided", "action", route.Action, "trust", route.Trust, "runtimeClass", route.RuntimeClassName, "reasons", route.Reasons)
}
