//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// Report is what the stage on the host has seen.
type Report struct {
	// Before and After are the machine without the cluster.
	Before, After Snapshot
	// Code is what the tests inside exited with.
	Code int
}

// Run builds what is missing, runs the tests of this binary in a cluster of their own, and returns when
// nothing of it is left. When ctx ends, the cluster does.
func Run(ctx context.Context, progress io.Writer) (report *Report, err error) {
	if err := Requirements(); err != nil {
		return nil, err
	}
	if _, err := controlplane.Build(ctx, progress, append(controlplane.Binaries(), controlplane.NodeBinaries()...)...); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "runtimeclass-router-node-")
	if err != nil {
		return nil, err
	}
	// The keeper has removed it, unless it was never started.
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := writeImages(ctx, images(scratch)); err != nil {
		return nil, fmt.Errorf("make images: %w", err)
	}
	report = &Report{}
	if report.Before, err = Take(filepath.Base(scratch)); err != nil {
		return nil, err
	}
	report.Code, err = keep(ctx, scratch)
	var unseen error
	if report.After, unseen = Take(filepath.Base(scratch)); unseen != nil {
		return nil, errors.Join(err, unseen)
	}
	if left := report.Before.Difference(report.After); err != nil && len(left) > 0 {
		err = fmt.Errorf("%w; left behind: %q", err, left)
	}
	return report, err
}

// keep runs the keeper, which takes the end of its input for the end of this process.
func keep(ctx context.Context, scratch string) (int, error) {
	keeper := again(Keeper, scratch)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal is not for it
	pipe, err := keeper.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := keeper.Start(); err != nil {
		return 0, fmt.Errorf("start the keeper: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = pipe.Close() })()
	err = keeper.Wait()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run the keeper: %w", err)
	}
	return keeper.ProcessState.ExitCode(), nil
}
