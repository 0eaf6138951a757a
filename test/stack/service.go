package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service does for replicas what a Service does for its Pods where kube-proxy is in the way: a
// new connection goes to one that is ready, by chance, and stays there. Nothing is tried
// twice. Which are ready it knows as a cluster does; see endpoint.go.
type Service struct {
	listener net.Listener
	probe    *corev1.Probe
	ctx      context.Context // of what runs
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	endpoints []*endpoint
	events    ServiceEvents
	faults    []error
}

// ServiceEvents count what a [Service] saw so far.
type ServiceEvents struct {
	// Led are connections that were led to a replica.
	Led int
	// Cut are connections that a replica ended while it owed an answer, Ended those that it
	// ended while it owed none.
	Cut, Ended int
	// Refused are connections that were led to a replica and not accepted.
	Refused int
	// Nowhere are connections that came while no replica was ready.
	Nowhere int
	// NotReady counts how often a replica that was ready no longer was, other than by
	// [Service.Delete], and Restarted how often a process that had ended was started anew.
	NotReady, Restarted int
}

// NewService returns one without replicas, which probes as the chart's Deployment says. The
// caller stops it.
func (s *Stack) NewService(ctx context.Context) (*Service, error) {
	deployment := &appsv1.Deployment{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Release}, deployment); err != nil {
		return nil, fmt.Errorf("read the chart's Deployment: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Service: %w", err)
	}
	return newService(ctx, listener, deployment.Spec.Template.Spec.Containers[0].ReadinessProbe), nil
}

func newService(ctx context.Context, listener net.Listener, probe *corev1.Probe) *Service {
	s := &Service{listener: listener, probe: probe}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(s.accept)
	return s
}

// Address is where it listens.
func (s *Service) Address() string { return s.listener.Addr().String() }

// Port is that of Address.
func (s *Service) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Routers are the replicas, ready or not.
func (s *Service) Routers() []*Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	var routers []*Router
	for _, e := range s.endpoints {
		if !e.deleted {
			routers = append(routers, e.router)
		}
	}
	return routers
}

// Events returns what was counted so far.
func (s *Service) Events() ServiceEvents {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// WaitReady waits until that many replicas are there, and connections are led to each.
func (s *Service) WaitReady(ctx context.Context, n int) error {
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		ready = 0
		for _, e := range s.endpoints {
			switch {
			case e.deleted:
			case e.changes > 0: // the cluster has not heard yet
				return false, nil
			case e.ready:
				ready++
			}
		}
		return ready == n, errors.Join(s.faults...)
	})
	if err != nil {
		return fmt.Errorf("wait for %d ready replicas: %w (there are %d)", n, err, ready)
	}
	return nil
}

// Stop ends the Service and leaves its replicas running. An error is what kept a replica
// from being started anew.
func (s *Service) Stop() error {
	s.stop()
	err := s.listener.Close() // it ends the loop that accepts
	s.running.Wait()
	return errors.Join(append(s.faults, err)...)
}

func (s *Service) accept() {
	for {
		front, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.running.Go(func() { s.lead(front) })
	}
}

// lead connects a client with a replica until either ends.
func (s *Service) lead(front net.Conn) {
	defer front.Close()
	address := s.pick()
	if address == "" {
		reset(front)
		return
	}
	var dialer net.Dialer
	back, err := dialer.DialContext(s.ctx, "tcp", address)
	if err != nil {
		s.count(func(e *ServiceEvents) { e.Refused++ })
		reset(front)
		return
	}
	defer back.Close()
	s.count(func(e *ServiceEvents) { e.Led++ })
	var owed atomic.Bool // the client has sent, and the replica has not answered
	ended := make(chan bool, 2)
	go func() { ended <- forward(back, front, &owed, true) }()
	go func() { ended <- !forward(front, back, &owed, false) }()
	select {
	case byReplica := <-ended:
		s.count(func(e *ServiceEvents) {
			switch {
			case byReplica && owed.Load():
				e.Cut++
			case byReplica:
				e.Ended++
			}
		})
	case <-s.ctx.Done():
	}
}

// reset has a client told, when its connection is closed, that nothing listens.
func reset(connection net.Conn) { _ = connection.(*net.TCPConn).SetLinger(0) }

// forward copies until one side ends, and reports whether that is the side it writes to.
func forward(to, from net.Conn, owed *atomic.Bool, owes bool) bool {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			owed.Store(owes)
			if _, err := to.Write(buffer[:n]); err != nil {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// pick returns the address of a ready replica, or "".
func (s *Service) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ready []*endpoint
	for _, e := range s.endpoints {
		if e.ready {
			ready = append(ready, e)
		}
	}
	if len(ready) == 0 {
		s.events.Nowhere++
		return ""
	}
	return ready[rand.IntN(len(ready))].address
}

func (s *Service) count(event func(*ServiceEvents)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	event(&s.events)
}

// of returns the endpoint of a replica. s.mu is held.
func (s *Service) of(router *Router) *endpoint {
	i := slices.IndexFunc(s.endpoints, func(e *endpoint) bool { return e.router == router })
	return s.endpoints[i]
}

// seconds of a probe's field, which the API server gives a default.
func seconds(n int32) time.Duration { return time.Duration(cmp.Or(n, 1)) * time.Second }
