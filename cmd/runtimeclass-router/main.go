// Command runtimeclass-router is the admission webhook and its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute()) }

// execute returns the exit status.
func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newCommand()
	invokedAs(root, os.Args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{code: 1, err: err}
	}
	if exit.err != nil {
		fmt.Fprintln(os.Stderr, "error:", exit.err)
	}
	return exit.code
}

// exitError ends the process with a status other than 1; err may be nil where all
// has been said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return fmt.Sprintf("exit status %d: %v", e.code, e.err) }

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "runtimeclass-router",
		Short: "Decide which container runtime a pod runs under, by how far its code is trusted",
		Long: `runtimeclass-router is an admission webhook: it evaluates the trust labels of a pod
and its namespace with Rego policies and patches runtimeClassName, nodeSelector,
tolerations and overhead. Untrusted pods land on gVisor or Kata pools, trusted ones
stay on crun.

route, policy and node-config need neither the webhook nor a cluster. As a plugin of
kubectl the program is called kubectl runtimeclass-router.`,
		Example: `  runtimeclass-router route -f pod.yaml --context prod
  runtimeclass-router policy test policy/
  runtimeclass-router node-config --cri containerd --context prod`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newAuditCommand(),
		newBenchCommand(),
		newCleanupCommand(),
		newDoctorCommand(),
		newNodeConfigCommand(),
		newPolicyCommand(),
		newRouteCommand(),
		newServeCommand(),
		newVersionCommand(),
		newWhyCommand(),
	)
	return root
}
