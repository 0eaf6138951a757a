package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// What all tests share, set before the first of them runs.
var (
	shared *stack.Stack
	shapes []conformance.Shape // those that are pods
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

// run is TestMain with deferred calls, which os.Exit would skip.
func run(m *testing.M) (code int) {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance: start:", err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "conformance: stop:", err)
			code = 1
		}
	}()
	return m.Run()
}

func start() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if shapes, err = Plain(); err != nil {
		return err
	}
	shared, err = stack.Start(ctx, stack.Options{Progress: os.Stderr, Cluster: []string{filepath.Join("..", "shapes", "cluster.yaml")}})
	if err != nil {
		return err
	}
	if err := Prepare(ctx, shared.Client, shapes); err != nil {
		return errors.Join(err, shared.Stop())
	}
	return nil
}
