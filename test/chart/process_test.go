package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// product is the command, built once.
var product = sync.OnceValues(func() (string, error) {
	// Where `make build` and package stack put it: the second build finds it done.
	binary, err := filepath.Abs("../../bin/runtimeclass-router")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/runtimeclass-router").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the product: %w\n%s", err, out)
	}
	return binary, nil
})

// command runs the product with a kubeconfig. The process is not started.
func command(ctx context.Context, t *testing.T, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := product()
	if err != nil {
		t.Fatal(err)
	}
	// KUBECONFIG is a list that colons divide, and the name of a ServiceAccount has some.
	plain := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.Symlink(kubeconfig, plain); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plain)
	return cmd
}

// replica is a process of the product with the chart's configuration and the rights of the
// chart's ServiceAccount. Nothing is mounted for it.
type replica struct {
	address, health string
	cmd             *exec.Cmd
	exited          chan struct{}
}

// startReplica starts one, and ends it with the test unless it was stopped before.
func (c *cluster) startReplica(t *testing.T) *replica {
	t.Helper()
	var ports []string
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() // together, so that no port is found twice
		ports = append(ports, listener.Addr().String())
	}
	stored := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-config"}, stored); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(stored.Data["config.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(ports[0])
	if err != nil {
		t.Fatal(err)
	}
	hook := config["webhook"].(map[string]any)
	hook["host"], hook["armAfter"] = "127.0.0.1", "0s"
	hook["drain"] = "100ms"
	if hook["port"], err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	config["metrics"] = map[string]any{"bindAddress": "0"}
	config["health"] = map[string]any{"bindAddress": ports[1]}
	raw, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	// t.Context ends before a test's cleanup, and would kill what can end by itself.
	cmd := command(context.WithoutCancel(t.Context()), t, c.serviceAccount(t), "serve", "--config", file)
	// It ends with this process, also where that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = t.Output()
	r := &replica{address: ports[0], health: "http://" + ports[1], cmd: cmd, exited: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // stop looks at the state
		close(r.exited)
	}()
	t.Cleanup(func() { r.stop(t) })
	return r
}

// stop asks it to end, and says how it did.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.exited:
	case <-time.After(patience):
		t.Error("a replica does not end", r.cmd.Process.Kill())
		<-r.exited
	}
	if !r.cmd.ProcessState.Success() {
		t.Errorf("a replica: %s", r.cmd.ProcessState)
	}
}

// ready returns an error unless its probe says so.
func (r *replica) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %s", response.Status)
	}
	return nil
}

// call returns an error unless the server at address serves the leaf, and the CA vouches
// for it by that name.
func call(ctx context.Context, address, name string, ca, leaf []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("no certificate in caBundle")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	served := connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
	if leaf != nil && !bytes.Equal(served, leaf) {
		return errors.New("it serves another certificate than the Secret's")
	}
	return nil
}
