//go:build linux

package node_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// host is what the stage on the host has seen, for the test that runs there.
var host *node.Report

// TestMain runs every test but the last inside of a cluster, and that one on the host when the cluster
// is gone.
func TestMain(m *testing.M) {
	flag.Parse()
	const onHost = "^TestHostIsAsItWas$"
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	switch node.CurrentStage() {
	case node.Host:
		os.Exit(around(func() int { return only(m, "test.run", onHost) }))
	case node.Keeper:
		os.Exit(node.Keep())
	case node.Init:
		os.Exit(node.Initialise())
	case node.Inside:
		// The proofs wait for pods rather than for processors.
		os.Exit(errorOr(flag.Set("test.parallel", "16"), func() int { return only(m, "test.skip", onHost) }))
	}
}

// around runs the cluster and then what is left for the host.
func around(after func() int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	host, err = node.Run(ctx, os.Stderr)
	return errorOr(err, func() int { return max(host.Code, after()) })
}

// only runs those tests that a flag of the test binary leaves.
func only(m *testing.M, name, value string) int {
	return errorOr(flag.Set(name, value), m.Run)
}

// errorOr reports the error, if there is one, and goes on otherwise.
func errorOr(err error, next func() int) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return next()
}

func TestHostIsAsItWas(t *testing.T) {
	for kind, lines := range host.Before {
		t.Logf("%s: %d before, %d after", kind, len(lines), len(host.After[kind]))
	}
	for _, line := range host.Before.Difference(host.After) {
		t.Error(line)
	}
}
