package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const prefix = "runtimeclass-router: "

// errorTable has an error of every kind, and how it is answered and counted.
func errorTable() map[string]struct {
	err error
	fate
} {
	fault := func(kind policies.FaultKind, err error) error { return &policies.Fault{Kind: kind, Err: err} }
	cause := errors.New("cause")
	wrapped := func(err error) error { return fmt.Errorf("outer: %w", err) }
	return map[string]struct {
		err error
		fate
	}{
		"undecodable":             {fmt.Errorf("%w pod: cause", ErrUndecodable), fate{"undecodable", 400, metav1.StatusReasonBadRequest}},
		"policy undefined":        {fault(policies.Undefined, cause), fate{"policy", 500, metav1.StatusReasonInternalError}},
		"policy failed":           {fault(policies.Failed, cause), fate{"policy", 500, metav1.StatusReasonInternalError}},
		"policy shape":            {fault(policies.BadShape, cause), fate{"policy", 500, metav1.StatusReasonInternalError}},
		"policy unsafe":           {fault(policies.Unsafe, cause), fate{"policy", 500, metav1.StatusReasonInternalError}},
		"policy unsafe, wrapped":  {wrapped(fault(policies.Unsafe, cause)), fate{"policy", 500, metav1.StatusReasonInternalError}},
		"policy timeout":          {fault(policies.TimedOut, context.DeadlineExceeded), fate{"deadline", 504, metav1.StatusReasonTimeout}},
		"policy timeout, wrapped": {wrapped(fault(policies.TimedOut, cause)), fate{"deadline", 504, metav1.StatusReasonTimeout}},
		"look-up":                 {&lookupError{"ns", cause}, fate{"api", 500, metav1.StatusReasonInternalError}},
		"look-up timed out":       {&lookupError{"ns", context.DeadlineExceeded}, fate{"deadline", 504, metav1.StatusReasonTimeout}},
		"class gone":              {wrapped(ErrClassGone), fate{"class_gone", 500, metav1.StatusReasonInternalError}},
		"no policy yet":           {policies.ErrNotLoaded, fate{"internal", 500, metav1.StatusReasonInternalError}},
		"anything else":           {cause, fate{"internal", 500, metav1.StatusReasonInternalError}},
	}
}

func TestEveryErrorHasItsAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range errorTable() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(test.err); got != test.fate {
				t.Errorf("got %+v, want %+v", got, test.fate)
			}
			for _, mode := range []policies.Mode{policies.Enforce, ""} {
				response := respond(&Route{Mode: mode}, test.err)
				want := &metav1.Status{Status: metav1.StatusFailure, Code: test.code, Reason: test.reason, Message: prefix + test.err.Error()}
				if diff := cmp.Diff(want, response.Result); diff != "" || response.Allowed {
					t.Errorf("mode %q: allowed %t, %s", mode, response.Allowed, diff)
				}
			}
		})
	}
}

func TestOnlyEnforceRefusesForAnError(t *testing.T) {
	t.Parallel()
	for name, test := range errorTable() {
		for mode, warnings := range map[policies.Mode][]string{
			policies.Warn:  {prefix + "in mode enforce this pod would be refused: " + test.err.Error()},
			policies.Audit: nil,
		} {
			t.Run(name+" in mode "+string(mode), func(t *testing.T) {
				t.Parallel()
				response := respond(&Route{Mode: mode}, test.err)
				if test.code == 400 {
					// What cannot be read cannot be let through.
					if response.Allowed || response.Result.Code != 400 {
						t.Errorf("got %+v", response)
					}
					return
				}
				want := admission.Allowed("")
				want.Warnings = warnings
				want.AuditAnnotations = map[string]string{"mode": string(mode), "error": test.err.Error()}
				if diff := cmp.Diff(want, response); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestRespond(t *testing.T) {
	t.Parallel()
	patch := []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/runtimeClassName", "gvisor")}
	routed := Route{
		Action: policies.Route, Trust: "untrusted", RuntimeClassName: "gvisor", Reasons: []string{"one", "two"},
		Warnings: []string{"look out"}, PolicyRevision: "r1",
	}
	denied := routed
	denied.Action, denied.RuntimeClassName = policies.Deny, ""
	kept := routed
	kept.Action = policies.Keep
	exempt := kept
	exempt.Action = policies.Exempt

	tests := map[string]struct {
		route    Route
		mode     policies.Mode
		allowed  bool
		patched  bool
		message  string
		warnings []string
	}{
		"route is enforced": {routed, policies.Enforce, true, true, "", []string{"look out"}},
		"route is told":     {routed, policies.Warn, true, false, "", []string{`in mode enforce this pod would run under runtime class "gvisor": one; two`, "look out"}},
		"route is silent":   {routed, policies.Audit, true, false, "", nil},
		"deny is enforced":  {denied, policies.Enforce, false, false, "one; two", []string{"look out"}},
		"deny is told":      {denied, policies.Warn, true, false, "", []string{"in mode enforce this pod would be denied: one; two", "look out"}},
		"deny is silent":    {denied, policies.Audit, true, false, "", nil},
		"keep is enforced":  {kept, policies.Enforce, true, true, "", []string{"look out"}},
		"keep is told":      {kept, policies.Warn, true, false, "", []string{"look out"}},
		"keep is silent":    {kept, policies.Audit, true, false, "", nil},
		"exempt is told":    {exempt, policies.Warn, true, false, "", []string{"look out"}},
		"exempt is silent":  {exempt, policies.Audit, true, false, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.route.Mode = test.mode
			if test.mode == policies.Enforce && test.route.Action != policies.Deny {
				test.route.Patch = patch
			}
			want := admission.Allowed("")
			if !test.allowed {
				want = admission.Denied("")
				want.Result = &metav1.Status{Status: "Failure", Code: 403, Reason: "Forbidden", Message: prefix + test.message}
			}
			if test.patched {
				want.Patches = patch
			}
			want.Warnings = []string{}
			for _, w := range test.warnings {
				want.Warnings = append(want.Warnings, prefix+w)
			}
			want.AuditAnnotations = map[string]string{
				"action": string(test.route.Action), "mode": string(test.mode), "trust": "untrusted",
				"runtime-class": test.route.RuntimeClassName, "reason": "one; two", "policy-revision": "r1",
			}
			if diff := cmp.Diff(want, respond(&test.route, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatIsSaidIsOneLine: controllers cut at the first newline, and a warning header
// with one in it is not sent at all.
func TestWhatIsSaidIsOneLine(t *testing.T) {
	t.Parallel()
	const text = "first\nsecond\r\n\tthird"
	var said []string
	for _, mode := range []policies.Mode{policies.Enforce, policies.Warn, policies.Audit} {
		for _, action := range []policies.Action{policies.Route, policies.Deny, policies.Keep} {
			response := respond(&Route{Mode: mode, Action: action, Reasons: []string{text}, Warnings: []string{text}}, nil)
			said = append(said, response.Warnings...)
			said = append(said, response.Result.Message)
		}
		response := respond(&Route{Mode: mode}, errors.New(text))
		said = append(said, response.Warnings...)
		said = append(said, response.AuditAnnotations["error"], response.Result.Message)
	}
	found := 0
	for _, s := range said {
		if strings.ContainsAny(s, "\n\r\t") {
			t.Errorf("more than one line: %q", s)
		}
		if strings.Contains(s, "first second third") {
			found++
		}
	}
	if found < 10 {
		t.Errorf("only %d of %q carry the text", found, said)
	}
}
