package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// heartbeat is how often a running build reports, so that nobody takes it for hung.
const heartbeat = 15 * time.Second

// compile builds one program and moves it into dir.
func (r Release) compile(ctx context.Context, progress io.Writer, lock *os.File, modules, dir, name string) error {
	src, err := r.sourceOf(name)
	if err != nil {
		return err
	}
	partial := filepath.Join(dir, "."+name+".partial")
	defer os.Remove(partial)

	module := filepath.Join(modules, src.module)
	if src.patched {
		copied, err := os.MkdirTemp(dir, ".patched-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(copied) }() // the build succeeded or failed by then
		if err := patchShim(ctx, module, copied); err != nil {
			return err
		}
		module = copied
	}
	cmd := goCommand(ctx, module, "build", "-buildvcs=false", "-ldflags="+src.ldflags, "-o", partial, src.pkg)
	// A build that outlives this process keeps the lock, so that no other writes to the same file.
	cmd.ExtraFiles = []*os.File{lock}
	// An interrupt, unlike a kill, lets the go command stop its compilers and clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr

	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began).Round(time.Second) }
	fmt.Fprintf(progress, "building %s %s from source (once; kept in the user's cache folder)\n", name, src.version)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(progress, "still building %s (%s)\n", name, elapsed())
		case err := <-done:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, tail(stderr.String()))
			}
			if err := os.Rename(partial, filepath.Join(dir, name)); err != nil {
				return err
			}
			fmt.Fprintf(progress, "built %s in %s\n", name, elapsed())
			return nil
		}
	}
}

// tail returns the last lines of a log, enough to see why a program gave up.
func tail(log string) string {
	const lines = 20
	all := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
