package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// baseline is a process of the command of that name.
type baseline struct {
	url     string
	pid     int
	port    int
	process *exec.Cmd
	stdin   io.Closer
	log     string
}

// buildBaselines builds the command into a folder.
func (o *options) buildBaselines(ctx context.Context, dir string) error {
	fmt.Fprintln(o.progress, "building the baselines")
	o.baseline = filepath.Join(dir, "baseline")
	_, err := goCommand(ctx, "build", "-o", o.baseline, module+"/test/bench/baseline")
	return err
}

// startBaseline starts a process of a kind. It may not serve yet: see [baseline.ready].
func (h *harness) startBaseline(kind string) (*baseline, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	b := &baseline{url: fmt.Sprintf("https://127.0.0.1:%d", port), port: port, log: filepath.Join(h.scratch, kind+".log")}
	log, err := os.Create(b.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has a descriptor of its own
	b.process = exec.Command(h.baseline, "-kind", kind, "-port", strconv.Itoa(port), "-cert-dir", h.certificate.dir, "-kubeconfig", h.KubeconfigPath)
	b.process.Stdout, b.process.Stderr = log, log
	// A terminal's Ctrl-C goes to the whole group; the end of its input ends this one.
	b.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if b.stdin, err = b.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := b.process.Start(); err != nil {
		return nil, fmt.Errorf("start baseline %s: %w", kind, err)
	}
	b.pid = b.process.Process.Pid
	return b, nil
}

// ready waits until it serves.
func (b *baseline) ready(ctx context.Context, c *http.Client) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, last = b.count(ctx, c)
		return last == nil, nil
	})
	if err != nil {
		log, _ := os.ReadFile(b.log)
		return fmt.Errorf("wait for baseline at %s: %w (last answer: %w); its log:\n%s", b.url, err, last, log)
	}
	return nil
}

// count is how many reviews it was sent.
func (b *baseline) count(ctx context.Context, c *http.Client) (int, error) {
	said, err := get(ctx, c, b.url+"/count")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(said)
}

// stop ends it, and kills it if it does not end.
func (b *baseline) stop() error {
	_ = b.stdin.Close() // its end is what matters
	ended := make(chan error, 1)
	go func() { ended <- b.process.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("a baseline did not end in 10 s"), b.process.Process.Kill(), <-ended)
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
