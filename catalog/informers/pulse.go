package informers

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// stale is how long a watch may be silent before what it feeds is not trusted. The API
// server sends a bookmark about once a minute on a watch with nothing to tell
// (bookmarkFrequency in its watch cache), so three have been missed by then.
const stale = 3 * time.Minute

// pulse remembers when each watch last heard something. A broken stream that nobody
// closed would leave the informers synced, and wrong.
type pulse struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time // by resource
}

// wrap returns a config whose watches are listened to.
func (p *pulse) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") == "true" && response.StatusCode == http.StatusOK {
				resource := path.Base(request.URL.Path)
				p.beat(resource)
				response.Body = &listener{ReadCloser: response.Body, beat: func() { p.beat(resource) }}
			}
			return response, err
		})
	})
	return config
}

func (p *pulse) beat(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[resource] = p.now()
}

// ages returns how long ago each watch heard something.
func (p *pulse) ages() map[string]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	ages := make(map[string]time.Duration, len(p.last))
	for resource, last := range p.last {
		ages[resource] = p.now().Sub(last)
	}
	return ages
}

// check returns an error that names a watch which is silent for too long.
func (p *pulse) check() error {
	for resource, age := range p.ages() {
		if age > stale {
			return fmt.Errorf("the watch of %s has been silent for %s", resource, age.Round(time.Second))
		}
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type listener struct {
	io.ReadCloser
	beat func()
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if n > 0 {
		l.beat()
	}
	return n, err
}
