package chart

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/runtimeclass-router/runtimeclass-router/certs"
)

// replicaOptions say what a replica runs with. Replicas are processes, because the
// rotator's controller has a name of which a process can hold only one.
type replicaOptions struct {
	Certs certs.Options
	// Kubeconfig is of the ServiceAccount, KubeletKubeconfig of the administrator.
	Kubeconfig, KubeletKubeconfig string
}

// runReplica does with package certs what the product does: it runs a manager, waits
// for the certificate, and serves with it. At "/" is the readiness check. Of the
// control lines, "mount" starts the stand-in for the kubelet; the replica ends with
// its control input, which ends with the test. It writes its address when it serves.
func runReplica(raw string, control io.Reader, out io.Writer) error {
	var o replicaOptions
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.ConsoleEncoder()))
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	certificates, err := certs.New(mgr, o.Certs, ctrl.Log.WithName("certs"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	mount := make(chan struct{})
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(control); lines.Scan(); {
			if lines.Text() == "mount" {
				close(mount)
			}
		}
	}()
	group.Go(func() error { return mgr.Start(ctx) })
	group.Go(func() error {
		select {
		case <-mount:
			return mountSecret(ctx, &o)
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error {
		if err := certificates.Wait(ctx); err != nil {
			return err
		}
		return serve(ctx, &o, certificates, out)
	})
	return group.Wait()
}

func serve(ctx context.Context, o *replicaOptions, certificates *certs.Certificates, out io.Writer) error {
	watcher, err := certwatcher.New(filepath.Join(o.Certs.Directory, "tls.crt"), filepath.Join(o.Certs.Directory, "tls.key"))
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		TLSConfig:         &tls.Config{GetCertificate: watcher.GetCertificate},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := certificates.Check(r); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.Start(ctx) })
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	fmt.Fprintln(out, listener.Addr())
	return group.Wait()
}

// mountSecret keeps the directory as the kubelet keeps a mounted Secret: as a link to
// a folder, which is replaced in one step.
func mountSecret(ctx context.Context, o *replicaOptions) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.KubeletKubeconfig)
	if err != nil {
		return err
	}
	kubelet, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: o.Certs.Namespace, Name: o.Certs.SecretName}
	var mounted string
	for ctx.Err() == nil {
		secret := &corev1.Secret{}
		err := kubelet.Get(ctx, key, secret)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the test is over
		case err != nil:
			return err
		}
		if secret.ResourceVersion != mounted {
			if err := project(o.Certs.Directory, secret); err != nil {
				return err
			}
			mounted = secret.ResourceVersion
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func project(directory string, secret *corev1.Secret) error {
	payload := filepath.Join(directory, "..payload-"+secret.ResourceVersion)
	if err := os.Mkdir(payload, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		content, ok := secret.Data[name]
		if !ok {
			if err := os.Remove(filepath.Join(directory, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(payload, name), content, 0o600); err != nil {
			return err
		}
	}
	next := filepath.Join(directory, "..data_tmp")
	if err := os.Symlink(filepath.Base(payload), next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(directory, "..data")); err != nil {
		return err
	}
	for name := range secret.Data {
		if name != "tls.crt" && name != "tls.key" {
			continue
		}
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(directory, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
