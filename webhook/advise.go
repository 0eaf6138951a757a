package webhook

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// WorkloadAdvisor answers the reviews of [ValidateWorkloadPath]: it says in warnings
// what the pods of a workload will get, so that a developer reads it at `kubectl
// apply` and not in the events of a ReplicaSet. It never denies.
type WorkloadAdvisor struct{ Options }

var _ admission.Handler = (*WorkloadAdvisor)(nil)

// NewWorkloadAdvisor returns an advisor.
func NewWorkloadAdvisor(options Options) *WorkloadAdvisor { return &WorkloadAdvisor{Options: options} }

// Handle implements admission.Handler.
func (a *WorkloadAdvisor) Handle(ctx context.Context, request admission.Request) admission.Response {
	response := admission.Allowed("")
	template, ok := Templates[request.Kind.Kind]
	if !ok || request.SubResource != "" || !fresh(template, &request) {
		return response
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	route, err := a.route(ctx, template, &request)
	a.Metrics.validated("workloads", &route, err)
	if err != nil {
		a.Log.Error(err, "no advice on a workload", "requestID", request.UID, "namespace", request.Namespace,
			"kind", request.Kind.Kind, "name", request.Name)
		return response
	}
	response.Warnings = prefixed(route.advice(request.Kind.Kind))
	return response
}

func (a *WorkloadAdvisor) route(ctx context.Context, template Template, request *admission.Request) (Route, error) {
	pod, err := template.Pod(request.Object.Raw, request.Name)
	if err != nil {
		return Route{}, fmt.Errorf("%w %s: %w", ErrUndecodable, request.Kind.Kind, err)
	}
	made := *request
	made.Object.Raw = pod
	in, err := a.input(ctx, &made)
	if err != nil {
		return Route{}, err
	}
	in.Request.Operation, in.Request.Name = string(admissionv1.Create), ""
	return a.Router.Route(ctx, in)
}

// fresh reports whether the pod template is new: a workload is updated for its
// replicas far more often than for its template.
func fresh(template Template, request *admission.Request) bool {
	if request.Operation != admissionv1.Update {
		return request.Operation == admissionv1.Create
	}
	before, errBefore := template.of(request.OldObject.Raw)
	after, errAfter := template.of(request.Object.Raw)
	return errBefore != nil || errAfter != nil || !bytes.Equal(before, after)
}

// advice says what the pods of a workload will get, and nothing where that is what
// they ask for.
func (route *Route) advice(kind string) []string {
	if route.Mode == policies.Audit {
		return nil
	}
	condition := ""
	if route.Mode == policies.Warn {
		condition = "in mode enforce "
	}
	why := strings.Join(route.Reasons, "; ")
	var said []string
	switch {
	case route.Action == policies.Deny:
		said = append(said, fmt.Sprintf("%sthe pods of this %s will be denied: %s", condition, kind, why))
	case route.Action == policies.Route && route.Isolation.AtLeast(catalog.UserSpaceKernel):
		said = append(said, fmt.Sprintf("%sthe pods of this %s will run under runtime class %q: %s", condition, kind, route.RuntimeClassName, why))
	}
	return append(said, route.Warnings...)
}
