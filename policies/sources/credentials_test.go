package sources

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// guarded answers only who is let in.
func (s *bundleServer) guarded(allowed func(*http.Request) bool) {
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func basic(username, password string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		u, p, ok := r.BasicAuth()
		return ok && u == username && p == password
	}
}

func TestBundleCredentials(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		s.guarded(basic("robot", "right"))
		o := s.options(t)
		o.CredentialsDirectory = t.TempDir()
		deliveries := run(t, o.source(patience))
		await(t, deliveries, fails("credentials need the file token, or username and password"))
		writeFiles(t, o.CredentialsDirectory, map[string]string{"username": "robot", "password": "wrong"})
		await(t, deliveries, fails("401"))
		// They are read anew with each poll.
		writeFiles(t, o.CredentialsDirectory, map[string]string{"password": "right\n"})
		await(t, deliveries, holds(modulesOne))
	})
}

func TestBundleToken(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		s.guarded(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer abc" })
		o := s.options(t)
		o.CredentialsDirectory = t.TempDir()
		writeFiles(t, o.CredentialsDirectory, map[string]string{"token": "abc\n"})
		await(t, run(t, o.source(patience)), holds(modulesOne))
	})
}

// TestCredentialsStayWithTheServer: registries send a client on to where data is stored.
func TestCredentialsStayWithTheServer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		s.put(pack(t, modulesOne, "", nil))
		storage := httptest.NewUnstartedServer(s.Config.Handler)
		storage.TLS = s.TLS
		leaked := make(chan string, 1)
		storage.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent := r.Header.Get("Authorization"); sent != "" {
				select {
				case leaked <- sent:
				default:
				}
			}
			s.Config.Handler.ServeHTTP(w, r)
		})
		storage.StartTLS()
		t.Cleanup(storage.Close)
		front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !basic("robot", "secret")(r) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		t.Cleanup(front.Close)
		o := s.options(t)
		o.URL = replaceHost(o.URL, s.Listener.Addr().String(), front.Listener.Addr().String())
		o.CredentialsDirectory = t.TempDir()
		writeFiles(t, o.CredentialsDirectory, map[string]string{"username": "robot", "password": "secret"})
		await(t, run(t, o.source(patience)), holds(modulesOne))
		select {
		case sent := <-leaked:
			t.Errorf("the other host was sent %q", sent)
		default:
		}
	})
}
