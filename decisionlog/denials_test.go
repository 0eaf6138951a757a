package decisionlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

var _ Recorder = (events.EventRecorder)(nil)

// recorder is a Recorder that keeps what it is told.
type recorder struct {
	said  []string
	about []corev1.ObjectReference
}

func (r *recorder) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.about = append(r.about, *regarding.(*corev1.ObjectReference))
	r.said = append(r.said, strings.Join([]string{eventtype, reason, action, fmt.Sprintf(note, args...)}, " "))
}

// metricsForTest makes counts that nobody reads.
type metricsForTest struct{}

func (*metricsForTest) counts() counts { m := newMetrics(); return m.counts("events") }

// told is what is said of a decision that an edit has changed.
func told(t *testing.T, denied *webhook.Decision, edit func(*webhook.Decision)) *recorder {
	t.Helper()
	d, request := *denied, *denied.Request
	d.Request = &request
	edit(&d)
	r := &recorder{}
	l, err := New(Config{Options: Options{Events: true}, Recorder: r})
	if err != nil {
		t.Fatal(err)
	}
	l.Decided(t.Context(), &d)
	return r
}

func TestADenialIsToldOnTheController(t *testing.T) {
	t.Parallel()
	r := told(t, decide(t, "untrusted", hostNetwork), func(*webhook.Decision) {})
	want := []corev1.ObjectReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "untrusted", Name: "api-7d4f9c", UID: "rs-1"}}
	if diff := cmp.Diff(want, r.about); diff != "" {
		t.Fatal(diff)
	}
	if !strings.HasPrefix(r.said[0], "Warning RuntimeDenied CreatePod no sandbox here can run this pod (spec.hostNetwork)") || len(r.said[0]) > 1000 {
		t.Errorf("said %q", r.said)
	}
}

func TestAnErrorThatRefusesIsToldToo(t *testing.T) {
	t.Parallel()
	r := told(t, failed(), func(*webhook.Decision) {})
	if len(r.said) != 1 || r.said[0] != "Warning RuntimeUndecided CreatePod no" {
		t.Errorf("said %q", r.said)
	}
}

func TestWhatIsNotTold(t *testing.T) {
	t.Parallel()
	denied, yes := decide(t, "untrusted", hostNetwork), true
	pod := func(metadata string) func(*webhook.Decision) {
		return func(d *webhook.Decision) {
			read, err := policies.ReadPod([]byte(`{"metadata": ` + metadata + `, "spec": {}}`))
			if err != nil {
				t.Fatal(err)
			}
			d.Input.Pod = read
		}
	}
	owner := func(kind, name, uid string) func(*webhook.Decision) {
		return pod(fmt.Sprintf(`{"ownerReferences": [{"apiVersion": "v1", "kind": %q, "name": %q, "uid": %q, "controller": true}]}`, kind, name, uid))
	}
	for name, edit := range map[string]func(*webhook.Decision){
		"a dry run":      func(d *webhook.Decision) { d.Request.DryRun = &yes },
		"what is let in": func(d *webhook.Decision) { response := *d.Response; response.Allowed = true; d.Response = &response },
		"a debug container": func(d *webhook.Decision) {
			d.Request.Operation, d.Request.SubResource = admissionv1.Update, "ephemeralcontainers"
		},
		"a pod without an owner": pod(`{}`),
		"without a controller":   pod(`{"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}`),
		"owners that are none":   pod(`{"ownerReferences": [{"controller": "yes"}]}`),
		"an unread pod":          func(d *webhook.Decision) { d.Input.Pod = nil },
		"a name that is none":    owner("ReplicaSet", "../secrets", "u"),
		"an owner without a UID": owner("ReplicaSet", "rs", ""),
		"a kind that is none":    owner(strings.Repeat("k", 300), "rs", "u"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := told(t, denied, edit); len(r.said) > 0 {
				t.Errorf("said %q", r.said)
			}
		})
	}
}

// TestEventsAreFew: of one object one a minute, and of all objects no more than the limit.
func TestEventsAreFew(t *testing.T) {
	t.Parallel()
	d := decide(t, "untrusted", hostNetwork)
	r := &recorder{}
	l, err := New(Config{Options: Options{Events: true}, Recorder: r})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(namespace, uid string, after time.Duration) {
		copied, request := *d, *d.Request
		request.Namespace, copied.Request, copied.Started = namespace, &request, d.Started.Add(after)
		pod, err := policies.ReadPod([]byte(strings.Replace(owned(plain), "rs-1", uid, 1)))
		if err != nil {
			t.Fatal(err)
		}
		copied.Input.Pod = pod
		l.Decided(t.Context(), &copied)
	}
	for range 100 {
		tell("a", "rs-1", 0)
	}
	tell("b", "rs-1", 0) // a UID that another tenant made up silences nobody
	tell("a", "rs-1", repeatAfter-1)
	tell("a", "rs-1", repeatAfter)
	if len(r.said) != 3 || value(t, l, "events", "written") != 3 || value(t, l, "events", "repeated") != 100 {
		t.Errorf("%d events, counted %v written, %v repeated", len(r.said), value(t, l, "events", "written"), value(t, l, "events", "repeated"))
	}
	for i := range 1000 {
		tell("c", fmt.Sprint("rs-c-", i), 2*repeatAfter)
	}
	if got := len(r.said) - 3; got != eventsAtOnce || value(t, l, "events", "dropped") != 1000-eventsAtOnce {
		t.Errorf("%d events of 1000 objects at once, want %d; %v dropped", got, eventsAtOnce, value(t, l, "events", "dropped"))
	}
	tell("d", "rs-d", 2*repeatAfter+time.Second)
	if got := len(r.said) - 3; got != eventsAtOnce+1 {
		t.Errorf("%d events a second later", got)
	}
}
