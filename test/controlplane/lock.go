package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// acquire takes the exclusive lock of the file at path, which it creates. Closing the returned file
// releases the lock, and so does the end of the process.
func acquire(ctx context.Context, path string, progress io.Writer) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open build lock: %w", err)
	}
	const pause = 200 * time.Millisecond
	var reported time.Time
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("take build lock %s: %w", path, err), file.Close())
		}
		if time.Since(reported) >= heartbeat {
			fmt.Fprintln(progress, "waiting for another process to build the control plane")
			reported = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for build lock %s: %w", path, context.Cause(ctx)), file.Close())
		case <-time.After(pause):
		}
	}
}
