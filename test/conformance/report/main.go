// Command report sends every pod shape of package conformance through real API servers,
// in an untrusted namespace: one without admission of its own, one with the obvious
// policy (obvious-policy.yaml), one with the product. It writes what came out as a page.
// The page is the same whenever the source is.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance/cluster"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	file := flag.String("o", "docs/conformance.md", "the file to write")
	flag.Parse()
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shapes, err := cluster.Plain()
	if err != nil {
		return err
	}
	known, err := conformance.Cluster()
	if err != nil {
		return err
	}
	m, err := measure(ctx, shapes)
	if err != nil {
		return err
	}
	p := newPage(shapes, known.Catalog(), m)
	var page bytes.Buffer
	if err := errors.Join(p.write(&page), os.WriteFile(file, page.Bytes(), 0o644)); err != nil {
		return err
	}
	fmt.Printf("of %d pods in an untrusted namespace, right are: %d without admission, %d with the obvious policy, %d with the router; see %s\n",
		len(shapes), p.Total.Right[none], p.Total.Right[obvious], p.Total.Right[router], file)
	return nil
}
