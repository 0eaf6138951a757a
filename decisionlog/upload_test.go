package decisionlog

import (
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// fast does in milliseconds what takes seconds.
// Its limits are those of a busy machine.
var fast = pace{gather: time.Millisecond, request: 5 * time.Minute, retry: time.Millisecond, longest: 10 * time.Millisecond, flush: 5 * time.Minute}

// service takes decision logs, as strictly as OPA documents them.
type service struct {
	*httptest.Server
	t testing.TB

	mu      sync.Mutex
	answers []http.HandlerFunc // to the next requests, in place of taking them
	taken   []event
	asked   []*http.Request
	batches int
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.take))
	t.Cleanup(s.Close)
	return s
}

func (s *service) take(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	var answer http.HandlerFunc
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/logs/cluster-a" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Content-Encoding") != "gzip" {
		s.t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		s.t.Error(err)
		return
	}
	var events []event
	decoder := json.NewDecoder(unpacked)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&events); err != nil {
		s.t.Error(err)
	}
	if rest, err := io.ReadAll(io.MultiReader(decoder.Buffered(), unpacked)); err != nil || len(rest) > 0 {
		s.t.Errorf("after the array: %q, %v", rest, err)
	}
	if len(events) == 0 {
		s.t.Error("an upload of nothing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, events...)
	s.batches++
}

func (s *service) answerWith(answers ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// await waits until that many are known to be uploaded. An upload that is under way when a log
// ends is sent once more.
func await(t *testing.T, l *Log, n float64) {
	t.Helper()
	for range 18000 {
		if value(t, l, "upload", "written") >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%v decisions are uploaded, want %v", value(t, l, "upload", "written"), n)
}

func (s *service) config(t *testing.T) Config {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return Config{
		Options: Options{Upload: UploadOptions{URL: s.URL + "/logs/cluster-a", Sample: Sample{Allowed: 1, Denied: 1}, Labels: map[string]string{"cluster": "a"}, CAFile: ca}},
		Out:     io.Discard, Instance: "router-0", Version: "v1",
		Log: funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{}),
	}
}

// upload starts a log that uploads.
func startUpload(t *testing.T, c Config, p pace) (*Log, func()) {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l.sinks[1].sink.(*upload).pace = p
	return l, run(t, l)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hang answers when the client has gone, which a server notices once it has read the request.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// withID is a decision under another UID.
func withID(d *webhook.Decision, id string) *webhook.Decision {
	copied, request := *d, *d.Request
	request.UID = types.UID(id)
	copied.Request = &request
	return &copied
}

func TestUploadIsOPAs(t *testing.T) {
	t.Parallel()
	s := newService(t)
	l, stop := startUpload(t, s.config(t), fast)
	denied := decide(t, "untrusted", hostNetwork+`, "runtimeClassName": "gvisor"`)
	l.Decided(t.Context(), denied)
	l.Decided(t.Context(), failed())
	await(t, l, 2)
	stop()
	raw := asJSON(t, s.taken)
	var got []map[string]any
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{
		"metadata": map[string]any{"generateName": "api-7d4f9c-", "ownerReferences": []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d4f9c", "uid": "rs-1"},
		}},
		"spec": map[string]any{"runtimeClassName": "gvisor"},
	}
	request := map[string]any{"operation": "CREATE", "subResource": "", "namespace": "untrusted", "name": "", "dryRun": false, "userInfo": map[string]any{"username": "alice"}}
	labels := map[string]any{"app": "runtimeclass-router", "id": "router-0", "version": "v1", "cluster": "a"}
	want := map[string]any{
		"labels": labels, "decision_id": "u-1", "path": "router/decision",
		"bundles":      map[string]any{"runtimeclass-router": map[string]any{"revision": denied.Route.PolicyRevision}},
		"input":        map[string]any{"request": request, "pod": pod},
		"requested_by": "alice", "timestamp": denied.Started.UTC().Format(time.RFC3339Nano),
		"metrics": map[string]any{"timer_server_handler_ns": float64(denied.Elapsed.Nanoseconds())},
		"result": map[string]any{
			"allowed": false, "action": "deny", "trust": "untrusted", "runtimeClassName": "", "reasons": toAny(denied.Route.Reasons),
		},
		"custom": map[string]any{"webhook": "mutate-pod", "mode": "enforce", "source": "evaluated"},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"code": "internal", "message": "no"}, got[1]["error"]); diff != "" || got[1]["result"] != nil {
		t.Errorf("%v\n%s", got[1], diff)
	}
	if value(t, l, "upload", "written") != 2 || value(t, l, "upload", "dropped") != 0 {
		t.Error("counted otherwise")
	}
}

func toAny(words []string) (list []any) {
	for _, word := range words {
		list = append(list, word)
	}
	return list
}

// TestUploadIsTriedAgain: nothing is lost by a server that fails, hangs, or lacks our
// credentials for a while, and the order stays. What times out may come twice.
func TestUploadIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newService(t)
	quick := fast
	quick.request = 2 * time.Second
	s.answerWith(status(500), status(503), status(429), status(401), status(404), status(302),
		hang,
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c := s.config(t)
	l, stop := startUpload(t, c, quick)
	d := decide(t, "untrusted", plain)
	var want []string
	for i := range 20 {
		id := fmt.Sprint("u-", i)
		want = append(want, id)
		l.Decided(t.Context(), withID(d, id))
	}
	await(t, l, 20)
	stop()
	var got []string
	for _, e := range s.taken {
		if !slices.Contains(got, e.DecisionID) {
			got = append(got, e.DecisionID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if value(t, l, "upload", "dropped") != 0 {
		t.Error("something was dropped")
	}
}

// TestUploadOfWhatTheServiceRefuses: a batch that is refused for what it is holds up no other.
func TestUploadOfWhatTheServiceRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answerWith(status(400))
	l, stop := startUpload(t, s.config(t), fast)
	d := decide(t, "untrusted", plain)
	l.Decided(t.Context(), withID(d, "bad"))
	for value(t, l, "upload", "dropped") == 0 {
		time.Sleep(time.Millisecond)
	}
	l.Decided(t.Context(), withID(d, "good"))
	await(t, l, 1)
	stop()
	if s.taken[0].DecisionID != "good" {
		t.Errorf("took %s", s.taken[0].DecisionID)
	}
	if value(t, l, "upload", "dropped") != 1 || value(t, l, "upload", "written") != 1 {
		t.Error("counted otherwise")
	}
}

// TestASlowServiceHoldsNobodyUp: what does not fit is dropped, and every decision is counted.
func TestASlowServiceHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := newService(t)
	release := make(chan struct{})
	s.answerWith(func(w http.ResponseWriter, r *http.Request) { <-release; s.take(w, r) })
	c := s.config(t)
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	const queued, n = 500, 1500 // a few batches, and more
	uploads := l.sinks[1].sink.(*upload)
	uploads.pace, uploads.queue = fast, make(chan *Entry, queued)
	stop := run(t, l)
	d := decide(t, "untrusted", plain)
	for range n {
		l.Decided(t.Context(), d)
	}
	dropped := value(t, l, "upload", "dropped")
	close(release)
	await(t, l, n-dropped)
	stop()
	written := value(t, l, "upload", "written")
	if dropped < queued || written < queued || written+dropped != n || len(s.taken) != int(written) {
		t.Errorf("%v written, %d taken, %v dropped of %d", written, len(s.taken), dropped, n)
	}
	if s.batches < 2 {
		t.Errorf("%v decisions in %d uploads: a batch has no limit", written, s.batches)
	}
}

// TestUploadAtTheEnd: what waits when the process ends is sent, and what cannot be is counted.
func TestUploadAtTheEnd(t *testing.T) {
	t.Parallel()
	d := decide(t, "untrusted", plain)
	for name, test := range map[string]struct {
		answer           http.HandlerFunc
		flush            time.Duration
		written, dropped float64
	}{"taken": {nil, fast.flush, 5, 0}, "not taken": {status(500), fast.flush, 0, 5}, "no answer": {hang, time.Second, 0, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			if test.answer != nil {
				s.answerWith(test.answer)
			}
			patient := fast
			patient.gather, patient.flush = time.Hour, test.flush
			l, stop := startUpload(t, s.config(t), patient)
			for range 5 {
				l.Decided(t.Context(), d)
			}
			stop()
			if written, dropped := value(t, l, "upload", "written"), value(t, l, "upload", "dropped"); written != test.written || dropped != test.dropped || len(s.taken) != int(test.written) {
				t.Errorf("%v written, %v dropped, %d taken", written, dropped, len(s.taken))
			}
		})
	}
}

// TestUploadCredentials are read anew each time, and go to nobody else.
func TestUploadCredentials(t *testing.T) {
	t.Parallel()
	s, other := newService(t), newService(t)
	directory := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("username", "u")
	write("password", "p\n")
	s.answerWith(
		func(w http.ResponseWriter, _ *http.Request) {
			write("token", "t0ken\n")
			w.WriteHeader(http.StatusUnauthorized)
		},
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/logs/cluster-a", http.StatusTemporaryRedirect)
		},
	)
	c := s.config(t)
	c.Upload.CredentialsDirectory = directory
	l, stop := startUpload(t, c, fast)
	l.Decided(t.Context(), decide(t, "untrusted", plain))
	await(t, l, 1) // both servers have httptest's certificate
	stop()
	if u, p, ok := s.asked[0].BasicAuth(); !ok || u != "u" || p != "p" {
		t.Errorf("first: %v", s.asked[0].Header)
	}
	if got := s.asked[1].Header.Get("Authorization"); got != "Bearer t0ken" {
		t.Errorf("then: %q", got)
	}
	if got := other.asked[0].Header.Get("Authorization"); got != "" {
		t.Errorf("another server was sent %q", got)
	}
}

// TestUploadIsNotRedirectedOutOfTLS, nor into a request that carries nothing.
func TestUploadIsNotRedirectedOutOfTLS(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	defer plain.Close()
	s := newService(t)
	redirect := func(url string, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, code) }
	}
	s.answerWith(redirect(plain.URL+"/logs/cluster-a", http.StatusTemporaryRedirect), redirect(s.URL+"/logs/cluster-a", http.StatusFound))
	var mu sync.Mutex
	var said []string
	c := s.config(t)
	c.Log = funcr.New(func(_, args string) { mu.Lock(); defer mu.Unlock(); said = append(said, args) }, funcr.Options{})
	l, stop := startUpload(t, c, fast)
	l.Decided(t.Context(), decide(t, "untrusted", hostNetwork))
	await(t, l, 1)
	stop()
	all := strings.Join(said, "\n")
	if !strings.Contains(all, "unencrypted") || !strings.Contains(all, "redirects an upload as a GET") {
		t.Errorf("said %s", all)
	}
}
