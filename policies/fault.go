package policies

import (
	"fmt"
)

// FaultKind is a kind of policy error; its text is the metric's value.
type FaultKind string

// The kinds of policy error.
const (
	// Undefined: the query gave no result.
	Undefined FaultKind = "undefined"
	// Failed: the evaluation ended in an error: a conflict of two rules, or a
	// builtin that was given what it cannot take.
	Failed FaultKind = "failed"
	// TimedOut: the request's deadline ended the evaluation.
	TimedOut FaultKind = "timeout"
	// BadShape: the result is no [Decision].
	BadShape FaultKind = "shape"
	// Unsafe: the decision would put a pod below the floor of its trust level, or
	// names what does not exist. It is found outside the policy, by package webhook.
	Unsafe FaultKind = "unsafe"
)

// Fault is a policy error: the policy, not the pod, is at fault.
type Fault struct {
	Kind FaultKind
	Err  error
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("policy error (%s): %v", f.Kind, f.Err) }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }
