package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// PodValidator answers the reviews of [ValidatePodPath]: pods as they will be stored,
// ephemeral containers, and changed labels of running pods.
type PodValidator struct{ Options }

var _ admission.Handler = (*PodValidator)(nil)

// NewPodValidator returns a validator.
func NewPodValidator(options Options) *PodValidator { return &PodValidator{Options: options} }

// Handle implements admission.Handler.
func (v *PodValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	switch {
	case request.Operation == admissionv1.Create && request.SubResource == "" && !mirror(ctx, &request):
		response := v.judge(ctx, &request, func(ctx context.Context, in policies.Input) (Route, error) {
			return v.Router.Judge(ctx, in)
		})
		// What there was to say, the mutating endpoint has said.
		response.Warnings = nil
		return response
	case request.Operation == admissionv1.Update && request.SubResource == "ephemeralcontainers":
		return v.judge(ctx, &request, func(ctx context.Context, in policies.Input) (Route, error) {
			return v.Router.JudgeEphemeral(ctx, in, request.Object.Raw, request.OldObject.Raw)
		})
	case request.Operation == admissionv1.Update && request.SubResource == "":
		return admission.Allowed("").WithWarnings(relabelled(&request)...)
	case request.Operation == admissionv1.Update && request.SubResource == "resize":
		return admission.Allowed("").WithWarnings(v.resized(&request)...)
	}
	return admission.Allowed("")
}

func (v *PodValidator) judge(ctx context.Context, request *admission.Request, decide func(context.Context, policies.Input) (Route, error)) admission.Response {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	d := &Decision{Path: ValidatePodPath, Request: request, Started: v.Now()}
	d.Input, d.Err = v.input(ctx, request)
	if d.Err == nil {
		d.Route, d.Err = decide(ctx, d.Input)
	}
	d.Elapsed = v.Now().Sub(d.Started)
	v.Metrics.validated("pods", &d.Route, d.Err)
	return v.answer(ctx, d)
}

// resized warns whoever resizes a pod in place in a sandbox: what the cgroup is given
// need not reach the guest, and Firecracker cannot change a running machine.
func (v *PodValidator) resized(request *admission.Request) []string {
	pod, err := readPod(request.Object.Raw)
	if err != nil {
		return nil
	}
	var name string
	if err := pod.DecodeSpec("runtimeClassName", &name); err != nil {
		return nil
	}
	snapshot, err := v.Router.Engine.Snapshot()
	if err != nil {
		return nil
	}
	class := snapshot.Catalog().RuntimeClass(name)
	switch {
	case class == nil || !class.Isolation.AtLeast(catalog.UserSpaceKernel):
		return nil
	case class.Family == "kata-fc":
		return prefixed([]string{fmt.Sprintf("runtime class %s cannot be resized in place: Firecracker does not change a running machine; delete the pod to have it made anew", class.Name)})
	}
	return prefixed([]string{fmt.Sprintf("under runtime class %s a resize in place may not reach the containers: check what they see", class.Name)})
}

// relabelled warns whoever changes a label that settled the runtime of a running pod.
// It needs no look-up: an update is never held up.
func relabelled(request *admission.Request) []string {
	before, errBefore := readPod(request.OldObject.Raw)
	after, errAfter := readPod(request.Object.Raw)
	if errBefore != nil || errAfter != nil {
		return nil
	}
	var warnings []string
	for _, label := range []string{catalog.LabelTrust, catalog.LabelProfile} {
		if was, is := before.Labels[label], after.Labels[label]; was != is {
			warnings = append(warnings, fmt.Sprintf("runtimeclass-router: label %s changed from %q to %q: the runtime of a running pod does not follow; delete the pod to have it routed anew", label, was, is))
		}
	}
	return warnings
}
