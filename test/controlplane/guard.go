package controlplane

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// guard makes sure that no process of a control plane outlives it, not even when this process is
// killed. envtest starts etcd and the API server itself and does not tell their process IDs, and a
// parent death signal is Linux only and tied to a thread. So every program is started through
// run.sh, which notes its process ID and becomes the program, and watch.sh waits for the end of a
// pipe whose other end only this process holds.
type guard struct {
	dir      string // holds pids, bin and a copy of run.sh named after each program
	watchdog *exec.Cmd
	pipe     io.WriteCloser
}

var (
	//go:embed run.sh
	runScript []byte
	//go:embed watch.sh
	watchScript string
)

// newGuard prepares dir for the programs in bin. The folder scratch, if not empty, is removed by
// the watchdog should this process be killed.
func newGuard(dir, bin, scratch string) (*guard, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(bin, filepath.Join(dir, "bin")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "pids"), nil, 0o600); err != nil {
		return nil, err
	}
	for _, name := range []string{Etcd, APIServer, Scheduler, ControllerManager} {
		if err := writeExecutable(filepath.Join(dir, name), runScript); err != nil {
			return nil, err
		}
	}
	g := &guard{dir: dir}
	g.watchdog = exec.Command("/bin/sh", "-c", watchScript, "watchdog", dir, scratch)
	g.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal is not for it
	var err error
	if g.pipe, err = g.watchdog.StdinPipe(); err != nil {
		return nil, err
	}
	if err := g.watchdog.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return g, nil
}

// writeExecutable keeps other goroutines from forking while the file is open for writing: their
// child would hold it open too, and the file could not be executed ("text file busy").
func writeExecutable(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}

// path returns the executable to start instead of the program of that name.
func (g *guard) path(name string) string { return filepath.Join(g.dir, name) }

// running returns the process IDs of the programs that are still there.
func (g *guard) running() ([]int, error) {
	noted, err := os.ReadFile(filepath.Join(g.dir, "pids"))
	if err != nil {
		return nil, err
	}
	var alive []int
	for field := range strings.FieldsSeq(string(noted)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("process ID %q: %w", field, err)
		}
		if g.owns(pid) {
			alive = append(alive, pid)
		}
	}
	return alive, nil
}

// owns reports whether pid exists and, where /proc tells, is not another program that was given the
// same process ID later. A zombie, whose command line is empty, counts as gone.
func (g *guard) owns(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || bytes.Contains(command, []byte(g.dir))
}

// kill kills every program that is still there and waits until none is.
func (g *guard) kill(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		pids, err := g.running()
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v survive SIGKILL", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
		}
	}
}

// release kills what is left and dismisses the watchdog.
func (g *guard) release() error {
	killed := g.kill(5 * time.Second)
	// A line tells the watchdog that there is nothing left to do. Should it be gone already, so is
	// its task.
	_, _ = io.WriteString(g.pipe, "done\n")
	_ = g.pipe.Close()
	return errors.Join(killed, g.watchdog.Wait())
}
