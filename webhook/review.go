package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// maxReview is the largest review that is read. An object is at most 3 MiB at the
// API server (its limit on request bodies), and a review may carry two.
const maxReview = 7 << 20

// Endpoint serves admission reviews over HTTP. Whatever arrives is answered with an
// AdmissionReview, so that the API server can tell its user what is wrong; a review
// without a request is refused, where controller-runtime's own endpoint would hand
// an empty request to the handler.
type Endpoint struct {
	Handler admission.Handler
	Log     logr.Logger
	// Metrics counts what ends before the handler, or in a panic; nil counts nothing.
	Metrics *Metrics
	// MaxInFlight bounds the reviews that are answered at once; 0 does not. One more is
	// refused as retryable: in a queue it would wait until its caller has gone.
	MaxInFlight int64

	draining atomic.Bool
	inFlight atomic.Int64
}

// Drain makes every answer ask its client to come back over a new connection. The
// API server keeps connections to a Service alive, and would stay on a replica that
// is about to end.
func (e *Endpoint) Drain() { e.draining.Store(true) }

// ServeHTTP implements http.Handler.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, pod, err := readReview(w, r)
	if n := e.inFlight.Add(1); err == nil && e.MaxInFlight > 0 && n > e.MaxInFlight {
		err = fmt.Errorf("%w: %d reviews are being answered; create the object again", errBusy, e.MaxInFlight)
	}
	defer e.inFlight.Add(-1)
	var response admission.Response
	if err != nil {
		e.Log.Error(err, "review is not handled")
		e.Metrics.failed(err)
		response = respond(&Route{}, err)
		if review.Request != nil {
			response.UID = review.Request.UID
		}
	} else {
		response = e.handle(withPod(r.Context(), pod), admission.Request{AdmissionRequest: *review.Request})
	}
	if e.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", "application/json")
	answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &response.AdmissionResponse}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		e.Log.Error(err, "write answer")
	}
}

// handle completes the handler's answer, and turns a panic into a refusal: the pod's
// creator gets an answer, and other requests are not hurt.
func (e *Endpoint) handle(ctx context.Context, request admission.Request) (response admission.Response) {
	defer func() {
		if p := recover(); p != nil {
			e.Log.Error(fmt.Errorf("panic: %v", p), "admission failed", "requestID", request.UID, "stack", string(debug.Stack()))
			err := errors.New("internal error; the webhook's log has the details")
			e.Metrics.failed(err)
			response = respond(&Route{}, err)
			response.UID = request.UID
		}
	}()
	response = e.Handler.Handle(ctx, request)
	if err := response.Complete(request); err != nil {
		response = respond(&Route{}, fmt.Errorf("encode patch: %w", err))
		response.UID = request.UID
	}
	return response
}

// bodies are those of reviews that have been decoded: what is kept of one is copied.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// done leaves a body to the next review, unless it is much larger than most.
func done(body *bytes.Buffer) {
	if body.Cap() <= 128<<10 {
		body.Reset()
		bodies.Put(body)
	}
}

// readReview returns a review whose TypeMeta is set even where there is an error, and the
// pod that is to be created, if it is one.
func readReview(w http.ResponseWriter, r *http.Request) (admissionv1.AdmissionReview, *policies.Pod, error) {
	empty := admissionv1.AdmissionReview{}
	empty.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	if r.Method != http.MethodPost {
		return empty, nil, fmt.Errorf("%w review: method %s, want POST", ErrUndecodable, r.Method)
	}
	body := bodies.Get().(*bytes.Buffer)
	defer done(body)
	body.Grow(int(max(min(r.ContentLength, maxReview), 0)) + bytes.MinRead)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxReview)); err != nil {
		return empty, nil, fmt.Errorf("%w review: %w", ErrUndecodable, err)
	}
	review, pod, err := decodeReview(body.Bytes())
	if err != nil {
		return empty, nil, fmt.Errorf("%w review: %w", ErrUndecodable, err)
	}
	switch {
	case review.GroupVersionKind() != empty.GroupVersionKind():
		empty.Request = review.Request // its uid is answered
		return empty, nil, fmt.Errorf("%w review: apiVersion %q, kind %q, want %s, AdmissionReview", ErrUndecodable, review.APIVersion, review.Kind, admissionv1.SchemeGroupVersion)
	case review.Request == nil:
		return empty, nil, fmt.Errorf("%w review: field request is missing", ErrUndecodable)
	}
	return review, pod, nil
}
