package controlplane

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// stopTimeout is how long a program may take to end by itself. An API server waits for clients that
// still watch; nothing in it is worth their time.
const stopTimeout = 3 * time.Second

// Stop ends every program, kills those that do not end in a few seconds, and removes the scratch
// folder if Start made it. It may be called more than once. An error means that something is left.
func (cp *ControlPlane) Stop() error { return cp.stop() }

func (cp *ControlPlane) shutdown() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	var stopping sync.WaitGroup
	for _, c := range cp.components {
		stopping.Go(func() { c.stop(stopTimeout) })
	}
	stopping.Wait()
	if cp.plane != nil {
		// envtest reports a program that it had to kill, and does not wait for its end. The guard
		// does, and reports one that is still there.
		_ = cp.plane.APIServer.Stop()
		_ = cp.plane.Etcd.Stop()
	}
	var errs []error
	if err := cp.guard.release(); err != nil {
		errs = append(errs, fmt.Errorf("stop control plane: %w", err))
	}
	if cp.ownsDir {
		if err := os.RemoveAll(cp.Dir); err != nil {
			errs = append(errs, fmt.Errorf("remove scratch folder: %w", err))
		}
	}
	return errors.Join(errs...)
}
