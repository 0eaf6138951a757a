package stack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// The Helm release that is installed.
const (
	Release   = "runtimeclass-router"
	Namespace = "runtimeclass-router"
)

// Options say what to run on.
type Options struct {
	// Progress takes a line for each step; nil discards them.
	Progress io.Writer
	// Cluster are manifests of RuntimeClasses and Nodes, files or directories.
	Cluster []string
	// Values are laid over the chart's, under what this package sets itself.
	Values map[string]any
	// Replicas, if not 0, is how many processes the API server reaches through a [Service], with
	// the certificates that they make themselves, as in a cluster. Without it there is one, which
	// the API server calls by URL.
	Replicas int
	// ConfigureAPIServer, if not nil, changes the API server's flags; see
	// [controlplane.Options].
	ConfigureAPIServer func(*envtest.Arguments)
}

// Stack is the product on a control plane. Only Stop ends it.
type Stack struct {
	*controlplane.ControlPlane
	// Client is an administrator's.
	Client client.Client
	// Router is the webhook, where there is one.
	Router *Router
	// Service leads to the replicas, where there are some.
	Service *Service

	root        string // of the source
	binary      string // of the product
	certificate []byte // of every router, its own CA; nil where routers make their own
}

// Scheme knows the kinds that are used here.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err) // client-go's own registration: a broken build
	}
	return s
}()

// Start returns when the API server sends pods to the webhook, and the webhook knows
// the cluster. ctx bounds the start only.
func Start(ctx context.Context, options Options) (_ *Stack, err error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	root, err := sourceRoot()
	if err != nil {
		return nil, err
	}
	// Before anything runs: both builds take their time on a machine's first run.
	binary, err := buildRouter(ctx, root, options.Progress)
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Progress:           options.Progress,
		Scheduler:          true,
		ControllerManager:  true,
		ConfigureAPIServer: options.ConfigureAPIServer,
	})
	if err != nil {
		return nil, err
	}
	s := &Stack{ControlPlane: plane, root: root, binary: binary}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.Client, err = client.New(plane.Config, client.Options{Scheme: Scheme}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if err := s.Apply(ctx, options.Cluster...); err != nil {
		return nil, err
	}
	if options.Replicas > 0 {
		return s, s.startReplicas(ctx, options)
	}
	return s, s.startRouter(ctx, options)
}

// startRouter installs the chart and starts the one process that the API server calls.
func (s *Stack) startRouter(ctx context.Context, options Options) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	var key []byte
	s.certificate, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	if err := writeFiles(s.certDir(), map[string]string{"tls.crt": string(s.certificate), "tls.key": string(key)}); err != nil {
		return fmt.Errorf("write the certificate: %w", err)
	}
	fmt.Fprintln(options.Progress, "installing the chart")
	if err := s.install(ctx, options.Values, map[string]any{
		"url":      fmt.Sprintf("https://127.0.0.1:%d%s", ports[0], webhook.MutatePodPath),
		"caBundle": base64.StdEncoding.EncodeToString(s.certificate),
	}); err != nil {
		return err
	}
	fmt.Fprintln(options.Progress, "starting the webhook")
	if s.Router, err = s.newRouter(ctx, Release, ports); err != nil {
		return err
	}
	if err := s.Router.Start(ctx); err != nil {
		return err
	}
	return s.waitLive(ctx, s.Router.Log)
}

// CABundle is what verifies the certificate of every router, as PEM.
func (s *Stack) CABundle() []byte { return s.certificate }

// Stop ends everything.
func (s *Stack) Stop() error {
	var errs []error
	if s.Router != nil {
		errs = append(errs, s.Router.Stop())
	}
	if s.Service != nil {
		routers := s.Service.Routers()
		errs = append(errs, s.Service.Stop())
		for _, router := range routers {
			errs = append(errs, router.Stop())
		}
	}
	return errors.Join(append(errs, s.ControlPlane.Stop())...)
}

// install puts the chart's objects in place, without pods: there is no node that
// could run them. What is in hook goes into the values' section webhook.
func (s *Stack) install(ctx context.Context, values, hook map[string]any) error {
	merged := map[string]any{}
	maps.Copy(merged, values)
	merged["replicas"] = 0
	merged["webhook"] = maps.Clone(webhookSection(merged))
	maps.Copy(webhookSection(merged), hook)
	raw, err := yaml.Marshal(merged)
	if err != nil {
		return fmt.Errorf("encode chart values: %w", err)
	}
	file := filepath.Join(s.Dir, "values.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return fmt.Errorf("write chart values: %w", err)
	}
	_, err = s.Helm(ctx, "install", Release, filepath.Join(s.root, "charts", "runtimeclass-router"),
		"--namespace", Namespace, "--create-namespace", "--values", file)
	return err
}

// chartFiles returns the data of the chart's ConfigMap of that name after the
// release's, and nil where the chart made none.
func (s *Stack) chartFiles(ctx context.Context, name string) (map[string]string, error) {
	var files corev1.ConfigMap
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Release + "-" + name}, &files)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("read what the chart configures: %w", err)
	}
	return files.Data, nil
}

func (s *Stack) certDir() string { return filepath.Join(s.Dir, "webhook-tls") }

// writeFiles writes files by name, and the directory that they are in.
func writeFiles(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() // together, so that no port is found twice
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
