package audit

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// How a lease is held: client-go's own figures for core components.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Run scans whenever this replica holds the lease, until ctx ends. To lose it ends the
// scan and nothing else: whether admission answers has nothing to do with it.
func (s *Scanner) Run(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.options.Lease.Namespace, Name: s.options.Lease.Name},
		Client:     s.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	for ctx.Err() == nil {
		if err := s.lead(ctx, lock); err != nil {
			return err
		}
		s.metrics.forget()
	}
	return nil
}

// lead returns when the lease is lost, or ctx ends, and nothing of this replica scans any more.
func (s *Scanner) lead(ctx context.Context, lock resourcelock.Interface) error {
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(ended)
				s.log.Info("this replica looks at running pods from now on")
				s.scanUntil(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect who looks at running pods: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil { // the lease was held, and lost
		<-ended
	}
	return nil
}
