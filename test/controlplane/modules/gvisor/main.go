// Command containerd-shim-runsc-v1 is gVisor's own shim. Its package v1 is a copy of gVisor's
// pkg/shim/v1 that the builder puts beside this file, with one line changed: see gvisor.go of package
// controlplane.
package main

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/shim"

	v1 "github.com/runtimeclass-router/runtimeclass-router/test/controlplane/modules/gvisor/v1"
	_ "github.com/runtimeclass-router/runtimeclass-router/test/controlplane/modules/gvisor/v1/plugin"
)

func main() { shim.Run(context.Background(), v1.NewShimManager("io.containerd.runsc.v1")) }
