package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Start builds what is missing and starts a control plane on free ports of the loopback interface,
// with RBAC authorization. It returns when every program is healthy. The context bounds the start
// only; [ControlPlane.Stop] ends the control plane. If Start fails, nothing is left running, and the
// error carries the end of the log of the program at fault.
//
// Should this process be killed, the programs are killed too.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	names := []string{Etcd, APIServer}
	if opts.Scheduler {
		names = append(names, Scheduler)
	}
	if opts.ControllerManager {
		names = append(names, ControllerManager)
	}
	release, err := Chosen()
	if err != nil {
		return nil, err
	}
	bin, err := release.Build(ctx, opts.Progress, names...)
	if err != nil {
		return nil, err
	}
	cp, err := newControlPlane(opts, release, bin)
	if err != nil {
		return nil, err
	}
	if err := cp.start(ctx, opts); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

func (cp *ControlPlane) start(ctx context.Context, opts Options) error {
	began := time.Now()
	if err := cp.startAPIServer(ctx, opts); err != nil {
		return err
	}
	errs := make(chan error, 2)
	launch := func(wanted bool, start func(context.Context) error) {
		if !wanted {
			errs <- nil
			return
		}
		go func() { errs <- start(ctx) }()
	}
	launch(opts.Scheduler, cp.startScheduler)
	launch(opts.ControllerManager, func(ctx context.Context) error { return cp.startControllerManager(ctx, opts.Kubelets) })
	if err := errors.Join(<-errs, <-errs); err != nil {
		return err
	}
	fmt.Fprintf(cp.progress, "control plane ready in %s\n", time.Since(began).Round(100*time.Millisecond))
	return nil
}

// startAPIServer starts etcd and the API server by envtest, which brings their certificates along.
// Its Environment is not used: variables such as USE_EXISTING_CLUSTER would direct it elsewhere.
func (cp *ControlPlane) startAPIServer(ctx context.Context, opts Options) error {
	etcd := &envtest.Etcd{Path: cp.guard.path(Etcd), DataDir: filepath.Join(cp.Dir, "etcd")}
	server := &envtest.APIServer{Path: cp.guard.path(APIServer), CertDir: cp.certDir()}
	etcd.StartTimeout, etcd.StopTimeout = cp.timeout, stopTimeout
	server.StartTimeout, server.StopTimeout = cp.timeout, stopTimeout
	cp.plane = &envtest.ControlPlane{Etcd: etcd, APIServer: server}

	if opts.Address != "" {
		host, port, err := net.SplitHostPort(opts.Address)
		if err != nil {
			return fmt.Errorf("address of the API server: %w", err)
		}
		secure := &server.SecureServing
		secure.Address, secure.Port = host, port
		server.Configure().Set("bind-address", "0.0.0.0")
	}
	for _, dir := range []string{etcd.DataDir, server.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	etcd.Configure().Set("unsafe-no-fsync", "true") // nothing has to survive a crash
	flags := server.Configure()
	flags.Disable("disable-admission-plugins")
	if disabled := disabledPlugins(opts); len(disabled) > 0 {
		flags.Set("disable-admission-plugins", disabled...)
	}
	if opts.ConfigureAPIServer != nil {
		opts.ConfigureAPIServer(flags)
	}
	if err := cp.launch(ctx, Etcd, func(log *os.File) error {
		etcd.Out, etcd.Err = log, log
		return etcd.Start()
	}); err != nil {
		return err
	}
	server.EtcdURL = etcd.URL
	if err := cp.launchAPIServer(ctx); err != nil {
		return err
	}
	if opts.Address != "" {
		// This machine's own clients go past the Service and a kube-proxy's rules for it, which cut
		// connections that are older than they.
		secure := &server.SecureServing
		secure.Address = "127.0.0.1"
	}
	var err error
	if cp.Config, cp.KubeconfigPath, err = cp.addUser("", "admin", "system:masters"); err != nil {
		return err
	}
	return cp.waitReady(ctx)
}

func (cp *ControlPlane) launchAPIServer(ctx context.Context) error {
	server := cp.plane.APIServer
	return cp.launch(ctx, APIServer, func(log *os.File) error {
		server.Out, server.Err = log, log
		return server.Start()
	})
}

// launch runs start, which knows no context, and makes it fail by killing its process when ctx ends.
func (cp *ControlPlane) launch(ctx context.Context, name string, start func(log *os.File) error) error {
	log, err := os.OpenFile(cp.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	done := make(chan error, 1)
	go func() { done <- start(log) }()
	for {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("start %s: %w", name, context.Cause(ctx))
			}
			if err != nil {
				return withLog(fmt.Errorf("start %s: %w", name, err), log.Name())
			}
			return nil
		case <-ctx.Done():
			_ = cp.guard.kill(time.Second)     // if it survives, Stop says so
			time.Sleep(100 * time.Millisecond) // the process may not have been started yet
		}
	}
}

// waitReady waits until the API server is ready, which, unlike healthy, includes that the RBAC roles
// of the other programs exist.
func (cp *ControlPlane) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cp.timeout)
	defer cancel()
	err = waitHealthy(ctx, client, cp.plane.APIServer.SecureServing.URL("https", "/readyz").String(), nil)
	if err != nil {
		return withLog(fmt.Errorf("start %s: %w", APIServer, err), cp.logPath(APIServer))
	}
	return nil
}

// disabledPlugins returns the admission plugins to turn off.
func disabledPlugins(opts Options) []string {
	if opts.ControllerManager {
		return opts.DisableAdmissionPlugins
	}
	return append([]string{"ServiceAccount"}, opts.DisableAdmissionPlugins...)
}

func (cp *ControlPlane) certDir() string { return filepath.Join(cp.Dir, "apiserver") }
