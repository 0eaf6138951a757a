package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// propagation is the time from a change of a Pod's readiness until connections are led
	// elsewhere: kube-proxy gathers changes for a second, its default.
	propagation = time.Second
	// relist is how often the kubelet looks which containers run.
	relist = time.Second
)

// endpoint is a replica, as the kubelet and the Service know it.
type endpoint struct {
	router  *Router
	address string
	unwatch context.CancelFunc

	// Guarded by the Service's mu.
	found   bool // ready, by the last probe that changed it
	ready   bool // connections are led to it
	deleted bool
	changes int // of found that have had no effect yet
}

// Add watches over a replica that runs: it is probed as its Pod would be, and started anew
// should it end.
func (s *Service) Add(router *Router) {
	ctx, cancel := context.WithCancel(s.ctx)
	e := &endpoint{router: router, address: strings.TrimPrefix(router.URL, "https://"), unwatch: cancel}
	s.mu.Lock()
	s.endpoints = append(s.endpoints, e)
	s.mu.Unlock()
	s.running.Go(func() { s.watch(ctx, e) })
}

// Delete does what deleting a Pod does: it is told to end, and while it drains its endpoint
// goes.
func (s *Service) Delete(router *Router) error {
	s.mu.Lock()
	e := s.of(router)
	e.deleted, e.found = true, false
	s.mu.Unlock()
	e.unwatch()
	time.AfterFunc(propagation, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endpoints = slices.DeleteFunc(s.endpoints, func(other *endpoint) bool { return other == e })
	})
	return router.Signal(syscall.SIGTERM)
}

// watch is the kubelet's part.
func (s *Service) watch(ctx context.Context, e *endpoint) {
	failures, next := int32(0), time.Now()
	for ctx.Err() == nil {
		if e.router.ended() {
			s.tell(e, false)
			if err := e.router.Start(ctx); err != nil {
				if ctx.Err() == nil {
					s.fault(fmt.Errorf("start a replica anew: %w", err))
				}
				return
			}
			s.count(func(e *ServiceEvents) { e.Restarted++ })
			failures, next = 0, time.Now()
		}
		if !time.Now().Before(next) {
			next = time.Now().Add(seconds(s.probe.PeriodSeconds))
			probing, cancel := context.WithTimeout(ctx, seconds(s.probe.TimeoutSeconds))
			healthy := e.router.healthy(probing, "/readyz")
			cancel()
			if healthy {
				failures = 0
				s.tell(e, true)
			} else if failures++; failures >= s.probe.FailureThreshold {
				s.tell(e, false)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relist):
		}
	}
}

// tell has connections led to a replica, or no longer, when the cluster has heard of it.
func (s *Service) tell(e *endpoint, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.found == ready || e.deleted {
		return
	}
	e.found = ready
	e.changes++
	if !ready {
		s.events.NotReady++
	}
	time.AfterFunc(propagation, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.ready = ready
		e.changes--
	})
}

func (s *Service) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err)
}
