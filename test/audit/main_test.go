package audit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// What the tests share, set before the first of them runs.
var (
	shared  *stack.Stack
	clients *kubernetes.Clientset // of an administrator
)

var pods = flag.Int("pods", 600, "how many pods the command looks at")

// patience bounds every wait: nothing takes as long unless it never happens.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

// run is TestMain with deferred calls, which os.Exit would skip.
func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	shared, err = stack.Start(ctx, stack.Options{
		Progress: os.Stderr,
		Cluster:  []string{filepath.Join("..", "..", "cmd", "runtimeclass-router", "cluster.yaml")},
		// The rights of everything, and one scan, of an empty cluster.
		Values: map[string]any{"audit": map[string]any{"interval": "24h", "reports": true, "evictionsPerMinute": 60}},
	})
	if err == nil {
		defer func() {
			for _, r := range replicas {
				if err := r.Stop(); err != nil {
					fmt.Fprintln(os.Stderr, "audit: stop:", err)
					code = 1
				}
			}
			if err := shared.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "audit: stop:", err)
				code = 1
			}
		}()
		config := rest.CopyConfig(shared.Config)
		config.WarningHandler = rest.NoWarnings{}
		clients, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit: start:", err)
		return 1
	}
	return m.Run()
}

// poll waits until a condition holds; otherwise says what is so instead.
func poll(t *testing.T, otherwise func() string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, holds)
	if err != nil {
		t.Fatal(errors.Join(err, errors.New(otherwise())))
	}
}
