package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// ServerOptions say where the webhook listens and with what certificate.
type ServerOptions struct {
	Host string
	Port int
	// GetCertificate is that of [tls.Config], asked for each connection. It must have an
	// answer when the server starts.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Log takes what goes wrong with a connection, at verbosity 1: it is the client's
	// doing more often than not.
	Log logr.Logger
}

// Server serves the endpoints over TLS, and loses nothing that it has accepted when it
// is told to end. controller-runtime's own server does: it makes the context that
// ends it the base of every connection's, which breaks off the handshakes that are
// under way; and http.Server drops, without an answer, an HTTP/1 request that it
// reads after Shutdown was called (conn.serve in net/http). In TLS 1.3 a client has
// sent its request by then.
type Server struct {
	options   ServerOptions
	mux       *http.ServeMux
	listening atomic.Bool
	busy      connections
}

// NewServer returns a server with the endpoints on their paths.
func NewServer(options ServerOptions, endpoints map[string]*Endpoint) *Server {
	s := &Server{options: options, mux: http.NewServeMux()}
	for path, endpoint := range endpoints {
		s.mux.Handle(path, endpoint)
	}
	return s
}

// Start stops listening when ctx ends, and returns when what it has accepted is
// answered.
func (s *Server) Start(ctx context.Context) error {
	if _, err := s.options.GetCertificate(&tls.ClientHelloInfo{}); err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port)), &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: s.options.GetCertificate,
	})
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.mux,
		// As controller-runtime has it: longer than the API server keeps its side.
		IdleTimeout:       90 * time.Second,
		ReadHeaderTimeout: 32 * time.Second,
		ConnState:         s.busy.track,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(s.options.Log.V(1)), slog.LevelInfo),
	}
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err := listener.Close()
		// Only then: what was accepted gets its answer, and with it the end of its
		// connection (Endpoint.Drain).
		s.busy.wait(bounded, unsent)
		// Shutdown closes the listener once more if Serve has not noticed yet, and says so
		// when all else is done.
		if again := server.Shutdown(bounded); !errors.Is(again, net.ErrClosed) {
			err = errors.Join(err, again)
		}
		stopped <- err
	})()
	s.listening.Store(true)
	// Which of the two it says depends on who is faster: Serve, or Shutdown after Close.
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// Check is a healthz.Checker: whether the server has started to listen.
func (s *Server) Check(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("the webhook does not listen yet")
	}
	return nil
}

// unsent is how long a connection may take to send its first request, once the server
// ends. It is http.Server.Shutdown's own measure.
const unsent = 5 * time.Second

// connections are those that have a request under way, or may be about to send their
// first. One that is idle after an answer is not among them.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew || state == http.StateActive {
		if c.open == nil {
			c.open = map[net.Conn]struct{}{}
		}
		c.open[conn] = struct{}{}
		return
	}
	delete(c.open, conn)
}

// wait returns when there are none, or after a time.
func (c *connections) wait(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Nobody waits for this but a process that ends: polling will do.
	for c.count() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
