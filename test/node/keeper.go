//go:build linux

package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Keep is the stage [Keeper]. It starts process 1 of the namespaces and, once that has ended or the
// host's stage has, removes what is left. It returns the status to exit with.
func Keep() int {
	// What ends the others is what it is here for.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// The kernel delivers the parent death signal at the end of the thread that forked.
	runtime.LockOSThread()
	first := again(Init, Scratch())
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	code := 1
	if err := first.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start process 1 of the namespaces:", err)
	} else {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // returns when the host's stage has closed it, or is no more
			_ = first.Process.Kill()
		}()
		// With process 1 the kernel ends every other of its namespace, and their mounts and links go
		// with the last.
		_ = first.Wait()
		if code = first.ProcessState.ExitCode(); code < 0 {
			code = 1 // killed
		}
	}
	if err := errors.Join(keepLogs(), removeGroups(), os.RemoveAll(Scratch())); err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		code = 1
	}
	return code
}

// removeGroups removes the run's cgroups. The kernel lets go of them a moment after the last process.
func removeGroups() error {
	groups, err := nodeGroups()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var errs []error
		for _, group := range groups {
			errs = append(errs, removeGroup(group))
		}
		if err := errors.Join(errs...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// logsVariable names a folder that the logs of every program and pod are copied to, which go
// with the rest otherwise.
const logsVariable = "RUNTIMECLASS_ROUTER_NODE_LOGS"

func keepLogs() error {
	to := os.Getenv(logsVariable)
	if to == "" {
		return nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"*.log", "controlplane/*.log", "*/pods/*/*/*.log"} {
		logs, err := filepath.Glob(filepath.Join(Scratch(), pattern))
		if err != nil {
			return err
		}
		for _, log := range logs {
			name, err := filepath.Rel(Scratch(), log)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(log)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, strings.ReplaceAll(name, "/", "_")), content, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
