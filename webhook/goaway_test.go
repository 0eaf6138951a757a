package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestDrainMovesHTTP2Connections: an API server may call over HTTP/2, which has no header
// Connection. An answer of a draining endpoint ends the connection by a GOAWAY frame: the
// next request comes over another one.
func TestDrainMovesHTTP2Connections(t *testing.T) {
	t.Parallel()
	certificate, pair := serverPair(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	endpoint := &Endpoint{Handler: allow, Log: logr.Discard(), Metrics: metrics, MaxInFlight: 10}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerOptions{
		Host: "127.0.0.1", Port: port, Log: logr.Discard(),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
	}, map[string]*Endpoint{MutatePodPath: endpoint})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for server.Check(nil) != nil {
		time.Sleep(time.Millisecond)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	// ask reports whether it was sent over a connection that had been used.
	ask := func() (reused bool) {
		t.Helper()
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		review := `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1"}}`
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, "https://"+listener.Addr().String()+MutatePodPath, strings.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %v", response.Proto, response.Status, err)
		}
		return reused
	}
	ask()
	if !ask() {
		t.Fatal("a second request does not use the first one's connection")
	}
	endpoint.Drain()
	ask() // its answer says GOAWAY
	for range 3 {
		time.Sleep(50 * time.Millisecond) // for the client to read the frame, which follows the answer
		if ask() {
			t.Error("a connection is kept while the endpoint drains")
		}
	}
}
