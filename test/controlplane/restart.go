package controlplane

import (
	"context"
	"fmt"
	"time"
)

// StopAPIServer ends the API server, as [ControlPlane.Stop] does, and leaves the other
// programs running. It returns when the process is gone.
func (cp *ControlPlane) StopAPIServer() error {
	_ = cp.plane.APIServer.Stop() // envtest reports that it had to kill; what counts is checked below
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(20 * time.Millisecond) {
		pid, err := cp.PID(APIServer)
		if err != nil {
			return nil //nolint:nilerr // it does not run
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stop %s: process %d survives SIGKILL", APIServer, pid)
		}
	}
}

// StartAPIServer starts it anew after [ControlPlane.StopAPIServer], on the same port, with the same
// certificates and the same etcd, and returns when it is ready.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := cp.launchAPIServer(ctx); err != nil {
		return err
	}
	return cp.waitReady(ctx)
}
