package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// component is a running program of the control plane that envtest does not know.
type component struct {
	name   string
	log    string // path of the file that takes its output
	cmd    *exec.Cmd
	exited chan struct{}
}

// startComponent starts the executable at path with its output going to the file at log.
func startComponent(name, path, log string, args ...string) (*component, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has a descriptor of its own
	c := &component{name: name, log: log, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = file, file
	// A group of its own, so that an interrupt at the terminal leaves it to Stop.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait() // the log says more than the exit status
		close(c.exited)
	}()
	return c, nil
}

// stop asks the component to end and kills it if it does not.
func (c *component) stop(timeout time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // an error says that it has ended already
	select {
	case <-c.exited:
	case <-time.After(timeout):
		_ = c.cmd.Process.Kill()
		<-c.exited
	}
}

// waitHealthy polls url until it answers 200, the component exits, or the context ends. A nil
// exited never exits.
func waitHealthy(ctx context.Context, client *http.Client, url string, exited <-chan struct{}) error {
	const pause = 50 * time.Millisecond
	var last error
	for {
		if last = probe(ctx, client, url); last == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("exited before it was healthy")
		case <-ctx.Done():
			return fmt.Errorf("not healthy: %w (last answer: %w)", context.Cause(ctx), last)
		case <-time.After(pause):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// withLog adds the end of the program's log to err.
func withLog(err error, log string) error {
	content, readErr := os.ReadFile(log)
	if readErr != nil || len(content) == 0 {
		return fmt.Errorf("%w (%s holds nothing)", err, filepath.Base(log))
	}
	return fmt.Errorf("%w; the end of %s:\n%s", err, filepath.Base(log), tail(string(content)))
}

// portTaken reports whether the component's log says that another process was faster to take its
// port.
func (c *component) portTaken() bool {
	content, err := os.ReadFile(c.log)
	return err == nil && strings.Contains(string(content), "address already in use")
}

// freePort returns a port of the loopback interface that is free now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
