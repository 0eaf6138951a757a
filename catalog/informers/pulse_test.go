package informers

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestPulse: a watch's every event counts, a list does not, and silence shows.
func TestPulse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(server.Close)
	now := time.Unix(1000, 0)
	p := &pulse{now: func() time.Time { return now }, last: map[string]time.Time{}}
	config := p.wrap(&rest.Config{Host: server.URL})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	open := func(url string) io.ReadCloser {
		response, err := client.Get(server.URL + url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.Body
	}
	open("/api/v1/namespaces?limit=1")
	if len(p.ages()) != 0 {
		t.Errorf("a list counts as a watch: %v", p.ages())
	}
	body := open("/api/v1/nodes?watch=true")
	now = now.Add(stale)
	if got := p.ages()["nodes"]; got != stale || p.check() != nil {
		t.Errorf("age %s: %v", got, p.check())
	}
	now = now.Add(time.Second)
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "the watch of nodes has been silent for 3m1s") {
		t.Errorf("got %v", err)
	}
	if _, err := io.ReadAll(body); err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err != nil || p.ages()["nodes"] != 0 {
		t.Errorf("an event does not count: %v", err)
	}
}
