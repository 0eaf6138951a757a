package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// newReplica serves what a replica does, without TLS: the Service looks into nothing.
func newReplica(t *testing.T, handler http.HandlerFunc) (*Router, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Router{URL: strings.Replace(server.URL, "http:", "https:", 1), HealthURL: server.URL}, server
}

// A Service leads to who is ready, counts what breaks, and mends nothing.
func TestService(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t.Context(), listener, &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 1})
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address(), nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
	check := func(want ServiceEvents, failed bool) {
		t.Helper()
		err := call()
		if (err != nil) != failed {
			t.Errorf("call: %v, want it to fail: %t", err, failed)
		}
		// The client may know before the Service has counted.
		var diff string
		if wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			got := s.Events()
			got.Ended = 0 // after an answer either side may be the first to end
			diff = cmp.Diff(want, got)
			return diff == "", nil
		}) != nil {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	check(ServiceEvents{Nowhere: 1}, true)

	breaks := make(chan bool, 1)
	breaks <- false
	router, server := newReplica(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		if <-breaks {
			panic(http.ErrAbortHandler) // what it owes never comes
		}
		fmt.Fprint(w, "ok")
	})
	s.Add(router)
	if err := s.WaitReady(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	check(ServiceEvents{Nowhere: 1, Led: 1}, false)
	breaks <- true
	check(ServiceEvents{Nowhere: 1, Led: 2, Cut: 1}, true)

	server.Close()
	for s.Events().NotReady == 0 {
		if err := call(); err == nil {
			t.Fatal("it leads to somebody who is not there")
		}
		if s.Events().Refused == 0 {
			t.Fatal("a connection that was refused is not counted")
		}
	}
	if err := s.WaitReady(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	refused := s.Events().Refused
	check(ServiceEvents{Nowhere: 2, Led: 2, Cut: 1, Refused: refused, NotReady: 1}, true)
}
