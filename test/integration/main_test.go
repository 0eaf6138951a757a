package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// What all tests share, set before the first of them runs.
var (
	shared   *stack.Stack
	clients  *kubernetes.Clientset // of an administrator; warnings go to the call's recorder
	auditLog string                // of the API server, a file of JSON lines
)

// startTimeout bounds the start of the stack, with everything built.
const startTimeout = 10 * time.Minute

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

// run is TestMain with deferred calls, which os.Exit would skip. A test that panics
// skips them too; then the stack's own watchdogs end what it started.
func run(m *testing.M) (code int) {
	stop, err := start()
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, "integration: stop:", err)
			code = 1
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration: start:", err)
		return 1
	}
	code = m.Run()
	if err := checkLog(shared.Router.Log); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 1
	}
	return code
}

// checkLog finds what no test sees: a panic is answered like any other error, and a
// data race, in a process that is built with -race, is only reported.
func checkLog(path string) error {
	log, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, fault := range []string{"DATA RACE", "panic: "} {
		if before, after, found := bytes.Cut(log, []byte(fault)); found {
			return fmt.Errorf("the webhook's log has a %s:\n%s%s%s", fault,
				before[max(0, len(before)-500):], fault, after[:min(len(after), 4000)])
		}
	}
	return nil
}

// start returns what ends everything, also along with an error.
func start() (stop func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	scratch, err := os.MkdirTemp("", "integration-")
	if err != nil {
		return func() error { return nil }, err
	}
	stop = func() error { return os.RemoveAll(scratch) }
	auditLog = filepath.Join(scratch, "audit.log")
	values, err := chartValues()
	if err != nil {
		return stop, err
	}
	shared, err = stack.Start(ctx, stack.Options{
		Progress: os.Stderr,
		Cluster:  []string{filepath.Join("testdata", "cluster.yaml")},
		Values:   values,
		ConfigureAPIServer: func(flags *envtest.Arguments) {
			flags.Set("audit-policy-file", filepath.Join("testdata", "audit-policy.yaml"))
			flags.Set("audit-log-path", auditLog)
		},
	})
	if err != nil {
		return stop, err
	}
	stop = func() error { return errors.Join(shared.Stop(), os.RemoveAll(scratch)) }
	config := rest.CopyConfig(shared.Config)
	config.WarningHandlerWithContext = recordWarning{}
	clients, err = kubernetes.NewForConfig(config)
	return stop, err
}

// chartValues are testdata/values.yaml with the policy beside it, as an admin would
// give it by `helm install --set-file`.
func chartValues() (map[string]any, error) {
	raw, err := os.ReadFile(filepath.Join("testdata", "values.yaml"))
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	policy, err := os.ReadFile(filepath.Join("testdata", "custom.rego"))
	if err != nil {
		return nil, err
	}
	values["policies"] = map[string]any{"files": map[string]any{"custom.rego": string(policy)}, "shadow": true}
	return values, nil
}
