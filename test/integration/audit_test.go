package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/decisionlog"
)

func TestAuditLogSaysWhatWasDecided(t *testing.T) {
	t.Parallel()
	// The API server puts the webhook's name before each key.
	const prefix = "pods.runtimeclass-router.io/"
	tests := map[string]struct {
		labels []string
		pod    trait
		status int
		want   map[string]string // reason: a part of it
	}{
		"denied": {[]string{"trust=untrusted"}, hostNetwork, 403,
			map[string]string{"action": "deny", "mode": "enforce", "trust": "untrusted", "runtime-class": "", "reason": "spec.hostNetwork"}},
		"routed": {[]string{"trust=untrusted"}, class("heavy"), 201,
			map[string]string{"action": "route", "mode": "enforce", "trust": "untrusted", "runtime-class": "gvisor", "reason": "gvisor is the first usable"}},
		"kept": {[]string{"trust=trusted"}, class("heavy"), 201,
			map[string]string{"action": "keep", "mode": "enforce", "trust": "trusted", "runtime-class": "heavy", "reason": "the pod asks for heavy"}},
		"warned": {nil, class("heavy"), 201,
			map[string]string{"action": "route", "mode": "warn", "trust": "untrusted", "runtime-class": "gvisor", "reason": "gvisor is the first usable"}},
		"audited": {[]string{"trust=untrusted", "mode=audit"}, hostNetwork, 201,
			map[string]string{"action": "deny", "mode": "audit", "trust": "untrusted", "runtime-class": "", "reason": "spec.hostNetwork"}},
		"policy error": {[]string{"mode=warn"}, conflict, 201,
			map[string]string{"mode": "warn", "error": "conflict"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, test.labels...)
			answer := n.create(newPod(test.pod))
			event := n.auditEvent()
			if event.ResponseStatus.Code != test.status {
				t.Fatalf("status %d, want %d (%v)", event.ResponseStatus.Code, test.status, answer.err)
			}
			got := map[string]string{}
			for key, value := range event.Annotations {
				if ours, ok := strings.CutPrefix(key, prefix); ok {
					got[ours] = value
				}
			}
			line := n.decisionLine(got["decision-id"])
			delete(got, "decision-id")
			if line.Namespace != n.name || line.Action != got["action"] || line.Mode != got["mode"] || line.PolicyRevision == "" || (line.Error != nil) != (got["error"] != "") {
				t.Errorf("the decision log has %+v", line)
			}
			revision := got["policy-revision"]
			delete(got, "policy-revision")
			if _, decided := test.want["action"]; decided == (revision == "") {
				t.Errorf("policy-revision %q", revision)
			}
			if answer.pod != nil && answer.pod.Annotations[catalog.AnnotationPolicyRevision] != "" && answer.pod.Annotations[catalog.AnnotationPolicyRevision] != revision {
				t.Errorf("policy-revision %q, and the pod says %q", revision, answer.pod.Annotations[catalog.AnnotationPolicyRevision])
			}
			want := maps.Clone(test.want)
			for _, key := range []string{"reason", "error"} {
				if part, ok := want[key]; ok && strings.Contains(got[key], part) {
					want[key] = got[key]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("our audit annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// decisionLine waits for the line of a decision in the webhook's log.
func (n *namespace) decisionLine(id string) (line decisionlog.Entry) {
	n.t.Helper()
	poll(n.t, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(shared.Router.Log)
		if err != nil {
			return false, err
		}
		for text := range bytes.Lines(raw) {
			if bytes.HasPrefix(text, []byte(`{"log":"decision"`)) && bytes.Contains(text, []byte(`"decisionID":"`+id+`"`)) {
				return true, json.Unmarshal(text, &line)
			}
		}
		return false, nil
	}, func() string { return "the decision log has no line of " + id })
	return line
}

// auditEvent is what is read of an audit.k8s.io/v1 Event.
type auditEvent struct {
	ObjectRef      struct{ Namespace, Resource, Subresource string }
	ResponseStatus struct{ Code int }
	Annotations    map[string]string
}

// auditEvent waits for the event of the one pod that was created in the namespace.
func (n *namespace) auditEvent() auditEvent {
	n.t.Helper()
	var found []auditEvent
	poll(n.t, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(auditLog)
		if err != nil {
			return false, err
		}
		found = nil
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, len(raw)+1)
		for lines.Scan() {
			var event auditEvent
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				continue // the last line is being written
			}
			if event.ObjectRef.Namespace == n.name && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "" {
				found = append(found, event)
			}
		}
		return len(found) > 0, lines.Err()
	}, func() string { return "the audit log has no event of a pod in " + n.name })
	if len(found) > 1 {
		n.t.Errorf("%d events of one pod", len(found))
	}
	return found[0]
}
