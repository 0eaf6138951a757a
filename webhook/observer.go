package webhook

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Observer is told of decisions on pods: to log them, or to hold another policy beside them.
type Observer interface {
	// Decided is called before the answer is sent, which waits for it: whatever takes
	// longer than a look at the decision belongs into a goroutine. Nothing of the decision
	// may be changed, then or later, by anybody. It holds the whole pod, with its secrets.
	Decided(ctx context.Context, d *Decision)
}

// Decision is what was decided in one review of a pod.
type Decision struct {
	// Path is the endpoint's: [MutatePodPath] or [ValidatePodPath].
	Path    string
	Request *admission.Request
	// Input is what was asked; its Pod is nil where namespace or pod could not be read.
	Input policies.Input
	// Route is what was decided. Beside an error it has no more than the mode and the policy's
	// revision, and not even these if that is how far it got.
	Route Route
	Err   error
	// Response is the answer. Its decision-id in the API server's audit log is the request's UID.
	Response *admission.Response

	Started time.Time
	Elapsed time.Duration
}

// DryRun reports whether nothing will come of the request.
func (d *Decision) DryRun() bool { return d.Request.DryRun != nil && *d.Request.DryRun }

// Sampled reports whether the decision is of a sample of that share, from 0 to 1. It goes by the
// review's UID, so that all who are told, and all replicas, agree on the same ones, and a smaller
// sample is part of a larger one.
func (d *Decision) Sampled(share float64) bool {
	const bits = 53 // of a float64's precision
	return share >= 1 || float64(xxhash.Sum64String(string(d.Request.UID))>>(64-bits)) < share*(1<<bits)
}

// ErrorKind is how the error is counted; "" if there is none.
func (d *Decision) ErrorKind() string {
	if d.Err == nil {
		return ""
	}
	return classify(d.Err).metric
}

// auditDecisionID is the audit annotation with the request's UID. The API server makes that
// up for each call and tells nobody but the webhook: without it nothing would join the audit
// log with what the webhook says.
const auditDecisionID = "decision-id"

// answer responds to a review, and tells the observers.
func (o *Options) answer(ctx context.Context, d *Decision) admission.Response {
	response := respond(&d.Route, d.Err)
	response.AuditAnnotations[auditDecisionID] = string(d.Request.UID)
	if d.Err == nil && d.Route.Trust == "" {
		return response // in mode warn or audit the final pod is not judged
	}
	d.Response = &response
	for _, observer := range o.Observers {
		observer.Decided(ctx, d)
	}
	return response
}
