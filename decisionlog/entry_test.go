package decisionlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

var ignored = cmp.Options{cmpopts.IgnoreFields(Entry{}, "Time", "DurationSeconds", "PolicyRevision"), cmpopts.EquateEmpty()}

func TestEntry(t *testing.T) {
	t.Parallel()
	owner := &Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "api-7d4f9c", UID: "rs-1"}
	base := Entry{Log: "decision", DecisionID: "u-1", Webhook: "mutate-pod", Operation: "CREATE", GenerateName: "api-7d4f9c-", Owner: owner, User: "alice"}
	routed := []string{`namespace "untrusted" is labelled trust=untrusted`, "profile general: gvisor is the first usable of gvisor, kata-fc, kata-clh, kata-qemu"}
	with := func(edit func(*Entry)) Entry { e := base; edit(&e); return e }
	for name, test := range map[string]struct {
		namespace, spec string
		want            Entry
	}{
		"routed": {"untrusted", plain, with(func(e *Entry) {
			e.Allowed, e.Mode, e.Action, e.Trust, e.Isolation = true, "enforce", "route", "untrusted", "user-space-kernel"
			e.RuntimeClassName, e.Reasons, e.Source = "gvisor", routed, "evaluated"
		})},
		"replaced": {"untrusted", `, "runtimeClassName": "crun"`, with(func(e *Entry) {
			e.Allowed, e.Mode, e.Action, e.Trust, e.Isolation = true, "enforce", "route", "untrusted", "user-space-kernel"
			e.RuntimeClassName, e.PreviousRuntimeClassName, e.Reasons, e.Source = "gvisor", "crun", routed, "evaluated"
			e.Warnings = []string{"runtime class crun is replaced by gvisor: isolation: handler crun is host-kernel, below user-space-kernel, the floor of untrusted"}
		})},
		"without the namespace": {"nowhere", plain, with(func(e *Entry) {
			e.GenerateName, e.Owner = "", nil
			e.Error = &Failure{Kind: "api", Message: `namespace "nowhere" cannot be read, try again: namespaces "nowhere" not found`}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decide(t, test.namespace, test.spec)
			got := newEntry(d)
			test.want.Namespace = test.namespace
			if diff := cmp.Diff(&test.want, got, ignored); diff != "" {
				t.Error(diff)
			}
			if got.Time.Location() != time.UTC || !got.Time.Equal(d.Started) || got.DurationSeconds != d.Elapsed.Seconds() || got.DurationSeconds <= 0 {
				t.Errorf("at %v in %v, want %v in %v", got.Time, got.DurationSeconds, d.Started, d.Elapsed)
			}
			if (got.PolicyRevision == "") != (got.Error != nil) {
				t.Errorf("policy revision %q", got.PolicyRevision)
			}
		})
	}
}

func TestEntryOfADenial(t *testing.T) {
	t.Parallel()
	e := newEntry(decide(t, "untrusted", hostNetwork))
	if e.Allowed || e.Action != "deny" || e.Mode != "enforce" || e.RuntimeClassName != "" || !strings.Contains(e.Reasons[0], "spec.hostNetwork") {
		t.Errorf("%+v", e)
	}
	// What would be denied is told as such, and was let in.
	if e := newEntry(decide(t, "unlabelled", hostNetwork)); !e.Allowed || e.Action != "deny" || e.Mode != "warn" {
		t.Errorf("%+v", e)
	}
}

// TestBothPhasesAreTold, and the second of two copies is remembered.
func TestBothPhasesAreTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	yes := true
	for _, namespace := range []string{"untrusted", "unlabelled"} {
		request := review(namespace, "u-"+namespace, owned(`, "runtimeClassName": "gvisor"`))
		request.Name, request.DryRun = "api-7d4f9c-x", &yes
		s.mutate.Handle(t.Context(), request)
		request.UID = "v-" + request.UID
		response := s.validate.Handle(t.Context(), request)
		if got := response.AuditAnnotations["decision-id"]; got != string(request.UID) {
			t.Errorf("decision-id %q of %s", got, request.UID)
		}
	}
	var told []string
	for _, d := range s.seen.decisions {
		e := newEntry(d)
		if e.Name != "api-7d4f9c-x" || !e.DryRun {
			t.Errorf("%+v", e)
		}
		told = append(told, strings.Join([]string{e.DecisionID, e.Webhook, e.Action, e.Source}, " "))
	}
	// The final pod lacks what a patch would have given it. In mode warn it is not judged: there
	// is no decision to tell.
	want := []string{"u-untrusted mutate-pod keep evaluated", "v-u-untrusted validate-pod deny remembered", "u-unlabelled mutate-pod keep evaluated"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestEntriesAreBounded: what a tenant or a policy writes does not fill the log.
func TestEntriesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u00e9", 1<<20)
	d := decide(t, "untrusted", plain)
	copied := *d
	request := *d.Request
	request.Name, request.UserInfo.Username = long, long
	copied.Request = &request
	copied.Route.Reasons, copied.Route.Warnings = []string{"first", long, "third"}, []string{long}
	if line := asJSON(t, newEntry(&copied)); len(line) > 4*maxWords || !strings.Contains(line, `"first","é`) || strings.Contains(line, "third") {
		t.Errorf("%d bytes: %.200s", len(line), line)
	}
	if d.Route.Reasons[0] == "first" {
		t.Error("the decision was changed")
	}
	copied.Err = errors.New(long)
	if e := newEntry(&copied); len(e.Error.Message) > maxWords || e.Error.Kind != "internal" {
		t.Errorf("%d bytes of %s", len(e.Error.Message), e.Error.Kind)
	}
}

var _ webhook.Observer = (*seen)(nil)
