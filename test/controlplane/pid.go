package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// PID returns the process ID of a program of the control plane, one of [Binaries], where /proc tells
// it.
func (cp *ControlPlane) PID(name string) (int, error) {
	pids, err := cp.guard.running()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // it has just ended
		}
		program, _, _ := bytes.Cut(command, []byte{0})
		if filepath.Base(string(program)) == name {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find the process of %s: it does not run", name)
}
