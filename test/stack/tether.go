package stack

import (
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// tether ends a process when this one ends, however that happens: a test that panics
// or runs into its timeout calls no Stop. A shell waits for the end of a pipe whose
// other end only this process holds. Release it when the process has ended.
func tether(pid int) (release func(), err error) {
	watchdog := exec.Command("/bin/sh", "-c", `cat; kill "$1"`, "tether", strconv.Itoa(pid))
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal is not for it
	pipe, err := watchdog.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("tether process %d: %w", pid, err)
	}
	if err := watchdog.Start(); err != nil {
		return nil, fmt.Errorf("tether process %d: %w", pid, err)
	}
	return func() {
		_ = syscall.Kill(-watchdog.Process.Pid, syscall.SIGKILL) // the shell and its cat
		_ = watchdog.Wait()                                      // it was killed
		_ = pipe.Close()
	}, nil
}
