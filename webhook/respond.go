package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// lookupError: the API server or the cache could not say what a namespace is.
type lookupError struct {
	namespace string
	err       error
}

func (e *lookupError) Error() string {
	return fmt.Sprintf("namespace %q cannot be read, try again: %v", e.namespace, e.err)
}

func (e *lookupError) Unwrap() error { return e.err }

// errBusy marks what is not begun, because too much else is under way.
var errBusy = errors.New("busy")

// retryAfter is when to come back then. The API server passes it on, and its clients obey.
const retryAfter = 2 * time.Second

// fate is how a kind of error is answered and counted.
type fate struct {
	metric string
	code   int32
	reason metav1.StatusReason
}

// fates maps errors to responses. The first row that matches wins; the last one
// matches everything.
var fates = []struct {
	matches func(error) bool
	fate
}{
	{is(ErrUndecodable), fate{"undecodable", http.StatusBadRequest, metav1.StatusReasonBadRequest}},
	{is(errBusy), fate{"busy", http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests}},
	{timedOut, fate{"deadline", http.StatusGatewayTimeout, metav1.StatusReasonTimeout}},
	{is(ErrClassGone), fate{"class_gone", http.StatusInternalServerError, metav1.StatusReasonInternalError}},
	{as[*policies.Fault], fate{"policy", http.StatusInternalServerError, metav1.StatusReasonInternalError}},
	{as[*lookupError], fate{"api", http.StatusInternalServerError, metav1.StatusReasonInternalError}},
	{func(error) bool { return true }, fate{"internal", http.StatusInternalServerError, metav1.StatusReasonInternalError}},
}

func classify(err error) fate {
	for _, row := range fates {
		if row.matches(err) {
			return row.fate
		}
	}
	panic("unreachable: the last row matches everything")
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[T error](err error) bool { var t T; return errors.As(err, &t) }

func timedOut(err error) bool {
	var fault *policies.Fault
	return errors.As(err, &fault) && fault.Kind == policies.TimedOut || errors.Is(err, context.DeadlineExceeded)
}

// respond turns a route, or the error in its place, into the answer to a review.
// Only mode enforce refuses; but a review that got no mode is refused.
func respond(route *Route, err error) admission.Response {
	if err != nil {
		return respondError(route, err)
	}
	response := admission.Allowed("")
	switch {
	case route.Mode != policies.Enforce:
		route.foretell(&response)
	case route.Action == policies.Deny:
		response = refuse(http.StatusForbidden, metav1.StatusReasonForbidden, strings.Join(route.Reasons, "; "))
		response.Warnings = route.Warnings
	default:
		response.Patches = route.Patch
		response.Warnings = route.Warnings
	}
	response.Warnings = prefixed(response.Warnings)
	response.AuditAnnotations = map[string]string{
		"action":          string(route.Action),
		"mode":            string(route.Mode),
		"trust":           route.Trust,
		"runtime-class":   route.RuntimeClassName,
		"reason":          strings.Join(route.Reasons, "; "),
		"policy-revision": route.PolicyRevision,
	}
	return response
}

func respondError(route *Route, err error) admission.Response {
	fate := classify(err)
	response := admission.Allowed("")
	switch {
	case route.Mode == policies.Enforce || route.Mode == "" || fate.code == http.StatusBadRequest:
		response = refuse(fate.code, fate.reason, err.Error())
		if fate.code == http.StatusTooManyRequests {
			response.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter.Seconds())}
		}
	case route.Mode == policies.Warn:
		response.Warnings = prefixed([]string{"in mode enforce this pod would be refused: " + err.Error()})
	}
	response.AuditAnnotations = map[string]string{"mode": string(route.Mode), "error": oneLine(err.Error())}
	return response
}

// foretell says what enforcing would do, in mode warn; mode audit is silent.
func (route *Route) foretell(response *admission.Response) {
	if route.Mode != policies.Warn {
		return
	}
	why := strings.Join(route.Reasons, "; ")
	switch route.Action {
	case policies.Deny:
		response.Warnings = append(response.Warnings, "in mode enforce this pod would be denied: "+why)
	case policies.Keep, policies.Exempt:
	case policies.Route:
		response.Warnings = append(response.Warnings, fmt.Sprintf("in mode enforce this pod would run under runtime class %q: %s", route.RuntimeClassName, why))
	}
	response.Warnings = append(response.Warnings, route.Warnings...)
}

// maxMessage is what is left of a message after the controllers and events that pass
// it on: an Event's note holds 1024 bytes.
const maxMessage = 1000

// brief cuts a message that is too long between two reasons, and says so.
func brief(message string) string {
	const more = "; and more, which runtimeclass-router route -f lists"
	if len(message) < maxMessage {
		return message
	}
	cut := message[:maxMessage-len(more)-1]
	if i := strings.LastIndex(cut, "; "); i > 0 {
		cut = cut[:i]
	}
	return strings.ToValidUTF8(cut, "") + more
}

// refuse answers with a status whose message is one line: controllers cut at the
// first newline.
func refuse(code int32, reason metav1.StatusReason, message string) admission.Response {
	response := admission.Denied("")
	response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: brief("runtimeclass-router: " + oneLine(message))}
	return response
}

func prefixed(warnings []string) []string {
	out := make([]string, 0, len(warnings))
	for _, w := range warnings {
		out = append(out, "runtimeclass-router: "+oneLine(w))
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
