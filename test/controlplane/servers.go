package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (cp *ControlPlane) startScheduler(ctx context.Context) error {
	return cp.startServer(ctx, Scheduler)
}

// startControllerManager also waits for the default namespace to have its ServiceAccount, without
// which no pod can be created there.
func (cp *ControlPlane) startControllerManager(ctx context.Context, kubelets bool) error {
	ca := filepath.Join(cp.Dir, "ca.crt")
	if err := os.WriteFile(ca, cp.plane.APIServer.CA, 0o600); err != nil {
		return err
	}
	controllers := "*"
	if !kubelets {
		// Nobody renews the Nodes' leases, so these controllers would taint them after 40 seconds and
		// evict their pods.
		controllers = "*,-node-lifecycle-controller,-taint-eviction-controller"
	}
	err := cp.startServer(ctx, ControllerManager,
		"--controllers="+controllers,
		"--use-service-account-credentials=true",
		// At the default of 20 requests a second the start takes five seconds more.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--root-ca-file="+ca,
		// The key that envtest makes the API server sign with.
		"--service-account-private-key-file="+filepath.Join(cp.certDir(), "sa-signer.key"))
	if err != nil {
		return err
	}
	c, err := client.New(cp.Config, client.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cp.timeout)
	defer cancel()
	if err := waitServiceAccount(ctx, c, corev1.NamespaceDefault); err != nil {
		return withLog(fmt.Errorf("start %s: %w", ControllerManager, err), cp.logPath(ControllerManager))
	}
	return nil
}

// startServer starts a client of the API server that has a secure port of its own, and waits until
// it is healthy. It starts over when another process was faster to take the port.
func (cp *ControlPlane) startServer(ctx context.Context, name string, args ...string) error {
	_, kubeconfig, err := cp.addUser("", "system:"+name)
	if err != nil {
		return err
	}
	args = append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		// The API server publishes no front proxy's certificate; looking for it only fills the log.
		"--authentication-skip-lookup=true",
	}, args...)
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := cp.tryServer(ctx, name, args)
		if err == nil {
			return nil
		}
		if attempt == attempts || c == nil || ctx.Err() != nil || !c.portTaken() {
			return fmt.Errorf("start %s: %w", name, err)
		}
	}
}

func (cp *ControlPlane) tryServer(ctx context.Context, name string, args []string) (*component, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--secure-port=" + strconv.Itoa(port)}, args...)
	c, err := startComponent(name, cp.guard.path(name), cp.logPath(name), args...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cp.timeout)
	defer cancel()
	// The server signs its own certificate and keeps it in memory.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("https://127.0.0.1:%d/healthz", port)
	if err := waitHealthy(ctx, &http.Client{Transport: transport}, url, c.exited); err != nil {
		c.stop(stopTimeout)
		return c, withLog(err, c.log)
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.components = append(cp.components, c)
	return c, nil
}
