// Command build builds the programs of the test control plane, all or the named ones, and prints
// the folder that holds them. The argument "nodes" names those of the nodes too. Progress goes to
// standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	names := os.Args[1:]
	if len(names) == 1 && names[0] == "nodes" {
		names = append(controlplane.Binaries(), controlplane.NodeBinaries()...)
	}
	dir, err := controlplane.Build(ctx, os.Stderr, names...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
