package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// suite is a package of tests, named after its folder below test.
type suite struct {
	name string
	run  string // of go test; all of the package if empty
}

// suites need a real API server. What package chart only renders is the same everywhere.
var suites = []suite{
	{name: "integration"},
	{name: "guards"},
	{name: "chart", run: "^(TestCluster|TestArming|TestFallbackByVersion)$"},
}

// runSuites builds the control plane and runs every suite on it, into a log each. That tests fail
// is no error here: the log says so.
func runSuites(ctx context.Context, release controlplane.Release, logs string) error {
	began := time.Now()
	if _, err := release.Build(ctx, os.Stderr); err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	for _, s := range suites {
		fmt.Fprintf(os.Stderr, "Kubernetes %s: %s (%s)\n", release.Version, s.name, time.Since(began).Round(time.Second))
		if err := s.test(ctx, release, logPath(logs, release, s)); err != nil {
			return fmt.Errorf("run %s on Kubernetes %s: %w", s.name, release.Version, err)
		}
	}
	return nil
}

func logPath(logs string, release controlplane.Release, s suite) string {
	return filepath.Join(logs, release.Minor()+"-"+s.name+".json")
}

func (s suite) test(ctx context.Context, release controlplane.Release, log string) error {
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout=40m", "-run="+s.run, "./test/"+s.name)
	cmd.Env = append(os.Environ(), controlplane.VersionVariable+"="+release.Minor())
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	// An interrupt lets the tests stop what they have started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && ctx.Err() == nil {
		return nil
	}
	return err
}
