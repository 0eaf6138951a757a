// Command build builds the programs of the test control plane, all or the named ones, and prints
// the folder that holds them. Progress goes to standard error.
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
	dir, err := controlplane.Build(ctx, os.Stderr, os.Args[1:]...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
