package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// A replica that is told to end goes on answering while the cluster learns of it, and
// loses nothing that it has accepted.
func TestShutdownUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	const workers = 16
	for name, protocol := range map[string]int{"HTTP1": 1, "HTTP2": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := untrusted(t)
			router := startRouter(t, "shutdown-"+name)
			l := newLoad(t, n, router, protocol)
			var running sync.WaitGroup
			t.Cleanup(running.Wait) // also after a failure: the load ends with t.Context
			for i := range workers {
				running.Go(func() { l.work(i) })
			}
			poll(t, func(context.Context) (bool, error) { return l.before.Load() >= 10*workers || t.Failed(), nil },
				func() string { return fmt.Sprintf("%d answers", l.before.Load()) })

			l.phase.Store(phaseSignalled)
			if err := router.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			poll(t, func(ctx context.Context) (bool, error) {
				return status(ctx, router.HealthURL+"/readyz") == http.StatusInternalServerError, nil
			},
				func() string { return "/readyz goes on saying that the process is ready" })
			l.phase.Store(phaseDraining)
			if err := router.Wait(); err != nil {
				t.Errorf("the process ended with %v", err)
			}
			running.Wait()

			t.Logf("answers: %d before the signal, %d after it while /readyz says not ready; %d connections refused at the end, %d of them in the handshake",
				l.before.Load(), l.during.Load(), l.refused.Load(), l.handshakes.Load())
			if l.before.Load() == 0 || l.during.Load() == 0 {
				t.Error("the load did not reach both sides of the signal")
			}
			if l.refused.Load() != workers {
				t.Errorf("%d workers saw the end of the listener, want all %d", l.refused.Load(), workers)
			}
		})
	}
}

// The phases of a shutdown, as far as the load knows.
const (
	phaseServing int32 = iota
	phaseSignalled
	phaseDraining
)

// load sends reviews to a router until it takes no more connections.
type load struct {
	t        *testing.T
	n        *namespace
	router   *stack.Router
	protocol int
	patch    []byte // of every answer

	phase      atomic.Int32
	closed     atomic.Bool // a connection has been refused
	before     atomic.Int64
	during     atomic.Int64
	refused    atomic.Int64
	handshakes atomic.Int64
}

func newLoad(t *testing.T, n *namespace, router *stack.Router, protocol int) *load {
	t.Helper()
	pod := newPod()
	answer, err := post(t.Context(), router.HTTP, router.URL, reviewOf(t, n, pod, "first"))
	if err != nil {
		t.Fatal(err)
	}
	wantPlacement(t, patched(t, pod, answer.response), "gvisor")
	return &load{t: t, n: n, router: router, protocol: protocol, patch: answer.response.Patch}
}

// work is one client with a connection of its own, which it keeps.
func (l *load) work(worker int) {
	client := l.client()
	defer client.CloseIdleConnections()
	for i := 0; ; i++ {
		uid := types.UID(fmt.Sprintf("%d-%d", worker, i))
		phase := l.phase.Load()
		answer, err := post(l.t.Context(), client, l.router.URL, reviewOf(l.t, l.n, newPod(), uid))
		var refusal *notAccepted
		switch {
		case errors.As(err, &refusal):
			if l.phase.Load() == phaseServing {
				l.t.Errorf("refused before the signal: %v", err)
			}
			if refusal.handshake {
				l.handshakes.Add(1)
			}
			l.refused.Add(1)
			return
		case l.t.Context().Err() != nil:
			return
		case err != nil:
			l.t.Errorf("a request that was accepted failed: %v", err)
			return
		}
		l.check(uid, answer, phase)
	}
}

// check compares an answer with what it must be; phase is that of the moment before
// its request was sent.
func (l *load) check(uid types.UID, answer reviewAnswer, phase int32) {
	if r := answer.response; !r.Allowed || r.UID != uid || !bytes.Equal(r.Patch, l.patch) {
		l.t.Errorf("answer to %s: allowed %t, uid %s, patch %s; want patch %s", uid, r.Allowed, r.UID, r.Patch, l.patch)
	}
	if answer.proto != l.protocol {
		l.t.Errorf("HTTP/%d, want HTTP/%d", answer.proto, l.protocol)
	}
	switch phase { // what was sent between the two may have come before the signal or after it
	case phaseServing:
		l.before.Add(1)
	case phaseDraining:
		l.during.Add(1)
		// HTTP/2 says it by a GOAWAY frame, which is not the request's to see.
		if l.protocol == 1 && !answer.closing {
			l.t.Error("an answer of a draining process keeps its connection")
		}
	}
}

// notAccepted is an attempt that got no connection. A listener that is closed resets
// what waits in its queue, unaccepted: the client sees that in its handshake.
type notAccepted struct {
	error
	handshake bool
}

func (l *load) client() *http.Client {
	config := l.router.HTTP.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "127.0.0.1"
	config.NextProtos = map[int][]string{1: {"http/1.1"}, 2: {"h2"}}[l.protocol]
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: l.protocol == 2,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			closed := l.closed.Load()
			var dialer net.Dialer
			raw, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				l.closed.Store(true)
				return nil, &notAccepted{error: err}
			}
			if closed {
				l.t.Error("the listener takes a connection after it refused one")
			}
			connection := tls.Client(raw, config)
			if err := connection.HandshakeContext(ctx); err != nil {
				return nil, &notAccepted{error: errors.Join(err, raw.Close()), handshake: true}
			}
			return connection, nil
		},
	}, Timeout: patience}
}

// startRouter starts a process like the stack's, and ends it after the test.
func startRouter(t *testing.T, name string) *stack.Router {
	t.Helper()
	router, err := shared.NewRouter(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Stop(); err != nil {
			t.Error(err)
		}
	})
	return router
}

// status is that of a GET, and 0 without an answer.
func status(ctx context.Context, url string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
