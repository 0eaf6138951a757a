// Command demo shows the product at work: a real kube-apiserver sends pods through
// the webhook, a real kube-scheduler binds each to a pool, and a table says what
// became of them. It exits with 0 only if each came out as its manifest expects, and
// leaves nothing running.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, "examples", os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, examples string, out, progress io.Writer) (err error) {
	started := time.Now()
	s, err := stack.Start(ctx, stack.Options{Progress: progress, Cluster: []string{filepath.Join(examples, "cluster.yaml")}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.Apply(ctx, filepath.Join(examples, "namespaces.yaml")); err != nil {
		return err
	}
	manifests, err := catalog.ReadManifests([]string{filepath.Join(examples, "pods"), filepath.Join(examples, "workloads.yaml")}, nil)
	if err != nil {
		return err
	}
	ready := time.Now()
	fmt.Fprintf(progress, "ready after %s; creating the examples\n", ready.Sub(started).Round(time.Second))
	outcomes, err := play(ctx, s, manifests)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	report(out, outcomes)
	failed := 0
	for _, o := range outcomes {
		if o.fault != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d did not come out as expected", failed, len(outcomes))
	}
	fmt.Fprintf(out, "\n%d pods, each as its manifest expects.\n", len(outcomes))
	return nil
}
