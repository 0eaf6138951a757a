package sources

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

var discard = logr.Discard()

// bundleServer serves one bundle over HTTPS or, in an OCI registry, by the tag v1.
type bundleServer struct {
	*httptest.Server
	url      string // of the bundle
	tells304 bool   // knows If-None-Match

	mu     sync.Mutex
	raw    []byte
	asked  []*http.Request
	answer http.HandlerFunc // instead of the bundle, if not nil
	put    func(raw []byte)
}

// kinds of server.
var kinds = map[string]func(*testing.T) *bundleServer{"https": newHTTPServer, "oci": newRegistry}

func newHTTPServer(t *testing.T) *bundleServer {
	t.Helper()
	s := &bundleServer{tells304: true}
	s.Server = httptest.NewTLSServer(s.intercepted(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		raw := s.raw
		s.mu.Unlock()
		etag := `"` + digest(policies.Modules{"raw": string(raw)}) + `"`
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.URL.Path != "/policies/bundle.tar.gz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", etag)
		_, _ = w.Write(raw)
	}))
	t.Cleanup(s.Close)
	s.url = s.URL + "/policies/bundle.tar.gz"
	s.put = func(raw []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw = raw
	}
	return s
}

// intercepted notes requests, and answers as told.
func (s *bundleServer) intercepted(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		answer := s.answer
		s.mu.Unlock()
		if answer == nil {
			answer = next
		}
		answer(w, r)
	})
}

func (s *bundleServer) answerWith(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *bundleServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// options fetch from the server, unsigned.
func (s *bundleServer) options(t *testing.T) BundleOptions {
	t.Helper()
	return BundleOptions{
		URL: s.url, PollInterval: metav1.Duration{Duration: 10 * time.Millisecond}, Unsigned: true,
		PersistDirectory: t.TempDir(), CAFile: caFile(t, s.Server),
	}
}

func (o BundleOptions) source(timeout time.Duration) Source {
	return &bundleSource{options: o, timeout: timeout, log: discard}
}

func fail500(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

// hang answers when the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var (
	modulesOne = policies.Modules{"one.rego": "package one\n"}
	modulesTwo = policies.Modules{"below/two.rego": "package two\n"}
)

func eachKind(t *testing.T, test func(*testing.T, *bundleServer)) {
	t.Helper()
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func TestBundleIsRotated(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "r1", nil))
		deliveries := run(t, s.options(t).source(patience))
		first := await(t, deliveries, holds(modulesOne))
		if first.Revision != "r1" || first.ETag == "" || first.Persisted {
			t.Errorf("delivered %+v", first)
		}
		// The same again is not delivered again.
		for range 3 {
			if d := <-deliveries; d.Modules != nil || d.Err != nil {
				t.Errorf("an unchanged bundle: %+v", d)
			}
		}
		if asked := s.requests(); s.tells304 && asked[len(asked)-1].Header.Get("If-None-Match") != first.ETag {
			t.Errorf("asked without the ETag: %v", asked[len(asked)-1].Header)
		}
		s.put(pack(t, modulesTwo, "r2", nil))
		if d := await(t, deliveries, holds(modulesTwo)); d.Revision != "r2" || d.ETag == first.ETag {
			t.Errorf("delivered %+v", d)
		}
	})
}

// TestBundleServerFails: an error is told, nothing is delivered in the place of the last
// good bundle, and the same bundle after it is no new one.
func TestBundleServerFails(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		deliveries := run(t, s.options(t).source(patience))
		await(t, deliveries, holds(modulesOne))
		s.answerWith(fail500)
		if d := await(t, deliveries, fails(s.url, "500", "Internal Server Error")); d.Modules != nil {
			t.Errorf("delivered %v", d.Modules)
		}
		s.answerWith(nil)
		if d := await(t, deliveries, func(d Delivery) bool { return d.Err == nil }); d.Modules != nil {
			t.Errorf("delivered %v anew", d.Modules)
		}
	})
}

// TestBundleServerHangs: an answer that does not come ends with the poll's time, also the
// first one.
func TestBundleServerHangs(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		s.answerWith(hang)
		deliveries := run(t, s.options(t).source(time.Second))
		await(t, deliveries, fails("no answer within 1s", "no earlier bundle"))
		s.answerWith(nil)
		await(t, deliveries, holds(modulesOne))
	})
}

func TestBundleOfAnotherCA(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		o := s.options(t)
		o.CAFile = ""
		await(t, run(t, o.source(patience)), fails("certificate"))
	})
}

func TestBundleThatIsNone(t *testing.T) {
	t.Parallel()
	s := newHTTPServer(t)
	deliveries := run(t, s.options(t).source(patience))
	for want, raw := range map[string][]byte{
		"gzip":                 []byte("<html>sign in</html>"),
		"no .rego file":        pack(t, nil, "", nil),
		"broken.rego:4":        pack(t, policies.Modules{"broken.rego": "package broken\n\na if {\n"}, "", nil),
		"more than 8388608":    make([]byte, maxDownloadBytes+1),
		"unpacks to more than": bomb(t),
	} {
		s.put(raw)
		await(t, deliveries, fails(want))
	}
}

// TestBundleWithoutADirectory: OPA's OCI client would panic.
func TestBundleWithoutADirectory(t *testing.T) {
	t.Parallel()
	s := newRegistry(t)
	s.put(pack(t, modulesOne, "", nil))
	o := s.options(t)
	o.PersistDirectory = filepath.Join(o.PersistDirectory, "file")
	if err := os.WriteFile(o.PersistDirectory, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, run(t, o.source(patience)), fails("keep bundles in "+o.PersistDirectory))
}

// TestBundleStoreHalfWritten: what a process that was killed leaves in the store of OPA's OCI
// client does not end the next one.
func TestBundleStoreHalfWritten(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"index.json", "oci-layout"} {
		s := newRegistry(t)
		s.put(pack(t, modulesOne, "", nil))
		o := s.options(t)
		store := filepath.Join(o.PersistDirectory, "oci")
		if err := os.MkdirAll(store, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(store, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		await(t, run(t, o.source(patience)), holds(modulesOne))
	}
}

// TestBundleStoreDoesNotGrow: a registry's client keeps what it has fetched.
func TestBundleStoreDoesNotGrow(t *testing.T) {
	t.Parallel()
	s := newRegistry(t)
	o := s.options(t)
	deliveries := run(t, o.source(patience))
	for i := range 5 {
		modules := policies.Modules{"a.rego": "package a\n\nn := " + string(rune('0'+i)) + "\n"}
		s.put(pack(t, modules, "", nil))
		await(t, deliveries, holds(modules))
		await(t, deliveries, func(d Delivery) bool { return d.Modules == nil && d.Err == nil })
	}
	blobs, err := os.ReadDir(filepath.Join(o.PersistDirectory, "oci", "blobs", "sha256"))
	if err != nil || len(blobs) > 3 { // manifest, configuration and layer
		t.Errorf("%d blobs are kept, %v", len(blobs), err)
	}
}
