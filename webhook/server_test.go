package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"
)

// serverPair is a certificate for this machine, as PEM, and with its key.
func serverPair(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, pair
}

// TestServerEndsWithoutAnError many times over: whether Serve or Shutdown notices first
// that the listener is closed is a matter of luck, and mostly it is Serve.
func TestServerEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	_, pair := serverPair(t)
	serve := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	for range 50 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		server := NewServer(ServerOptions{Host: "127.0.0.1", Port: port, GetCertificate: serve, Log: logr.Discard()}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Start(ctx) }()
		for server.Check(&http.Request{}) != nil {
			time.Sleep(time.Millisecond)
		}
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Log(err) // the server may be faster
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatalf("ended with %v", err)
		}
	}
}

func TestServerWithoutACertificate(t *testing.T) {
	t.Parallel()
	none := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none yet") }
	server := NewServer(ServerOptions{Host: "127.0.0.1", GetCertificate: none, Log: logr.Discard()}, nil)
	if err := server.Start(t.Context()); err == nil || server.Check(nil) == nil {
		t.Errorf("started without a certificate: %v", err)
	}
}
