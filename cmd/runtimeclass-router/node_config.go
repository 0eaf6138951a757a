package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/nodeconfig"
)

type nodeConfigOptions struct {
	cri          string
	cluster      routeOptions
	handlers     []string
	version      int
	cgroupDriver string
	hasDefault   bool
	nodeconfig.Options
}

// unusedFlags are those that a CRI's file has no place for.
var unusedFlags = map[string][]string{
	"crio":   {"config-version", "cgroup-driver", "snapshotter"},
	"podman": {"config-version", "cgroup-driver", "snapshotter", "runtime-config", "default-runtime"},
}

func newNodeConfigCommand() *cobra.Command {
	o := &nodeConfigOptions{}
	cmd := &cobra.Command{
		Use:   "node-config --cri containerd|crio",
		Short: "Print what makes a node offer the handlers of the cluster's RuntimeClasses",
		Long: `Print the drop-in file that makes containerd or CRI-O offer the handlers of the
cluster's RuntimeClasses, with comments for whoever installs it. Nothing is installed,
neither runtimes nor the file.

The RuntimeClasses are taken from --cluster files, or from a live cluster (--context or
--kubeconfig), or else from the embedded example of the command route. --handlers makes
the file of one pool. A handler that is not known is left as a comment, with what to fill
in, and noted on standard error.

--cri docker says why there is no such file, and --cri podman what to pass to podman.`,
		Example: `  runtimeclass-router node-config --cri containerd --context prod --handlers runsc
  runtimeclass-router node-config --cri containerd --config-version 2 --cluster runtimeclasses.yaml
  kubectl get runtimeclasses -o yaml | runtimeclass-router node-config --cri crio --cluster -
  runtimeclass-router node-config --cri crio --context prod --binary crun=/usr/bin/crun`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range unusedFlags[o.cri] {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s changes nothing with --cri %s", name, o.cri)
				}
			}
			o.hasDefault = cmd.Flags().Changed("default-runtime")
			o.cluster.clusterStdin = cmd.InOrStdin()
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.cri, "cri", "", "containerd, crio, docker or podman")
	flags.StringArrayVar(&o.cluster.cluster, "cluster", nil, "a file or directory with the cluster's RuntimeClasses, or - for standard input; may be repeated")
	flags.StringVar(&o.cluster.context, "context", "", "take the RuntimeClasses from this kubeconfig context")
	flags.StringVar(&o.cluster.kubeconfig, "kubeconfig", "", "take the RuntimeClasses from the current context of this kubeconfig")
	flags.StringSliceVar(&o.handlers, "handlers", nil, "handlers to configure, those of one pool say; all if not given")
	flags.StringVar(&o.DefaultRuntime, "default-runtime", "", "handler of pods without a class; empty leaves the node's (default: crun, or runc, where a class has it)")
	flags.IntVar(&o.version, "config-version", 3, "version of containerd's configuration: 3 for containerd 2.x, 2 for 1.x")
	flags.StringVar(&o.cgroupDriver, "cgroup-driver", "systemd", "cgroupDriver of the kubelet, systemd or cgroupfs, which containerd's runtimes follow")
	flags.StringToStringVar(&o.Binaries, "binary", nil, "HANDLER=PATH of a runtime, or of its shim where it brings one")
	flags.StringToStringVar(&o.Files, "runtime-config", nil, "HANDLER=PATH of what a shim reads")
	flags.StringToStringVar(&o.Snapshotters, "snapshotter", nil, "HANDLER=NAME of the snapshotter of containerd that a runtime needs")
	if err := errors.Join(cmd.MarkFlagRequired("cri"),
		cmd.RegisterFlagCompletionFunc("cri", cobra.FixedCompletions([]string{"containerd", "crio", "docker", "podman"}, cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("cgroup-driver", cobra.FixedCompletions([]string{"systemd", "cgroupfs"}, cobra.ShellCompDirectiveNoFileComp))); err != nil {
		panic(err) // the flags are defined above
	}
	return cmd
}

func (o *nodeConfigOptions) run(ctx context.Context, out, errOut io.Writer) error {
	write := map[string]func(nodeconfig.Options) (nodeconfig.Config, error){
		"containerd": func(options nodeconfig.Options) (nodeconfig.Config, error) {
			return nodeconfig.Containerd(options, o.version)
		},
		"crio":   nodeconfig.CRIO,
		"podman": nodeconfig.Podman,
	}[o.cri]
	switch {
	case o.cri == "docker":
		return nodeconfig.ErrDocker
	case write == nil:
		return fmt.Errorf("--cri %q: use containerd, crio, docker or podman", o.cri)
	case o.cgroupDriver != "systemd" && o.cgroupDriver != "cgroupfs":
		return fmt.Errorf("--cgroup-driver %q: use systemd or cgroupfs", o.cgroupDriver)
	}
	cluster, _, err := o.cluster.clusterState(ctx, &catalog.Manifests{})
	if err != nil {
		return err
	}
	options := o.Options
	options.Source = o.source()
	options.SystemdCgroup = o.cgroupDriver == "systemd"
	if options.Handlers, err = nodeconfig.Handlers(cluster, o.handlers); err != nil {
		return err
	}
	if !o.hasDefault {
		options.DefaultRuntime = nodeconfig.Default(options.Handlers)
	}
	config, err := write(options)
	if err != nil {
		return err
	}
	for _, note := range config.Notes {
		fmt.Fprintf(errOut, "note: %s\n", note)
	}
	_, err = io.WriteString(out, config.Text)
	return err
}

// source says where the handlers come from, on one line of a comment.
func (o *nodeConfigOptions) source() string {
	switch {
	case len(o.cluster.cluster) > 0:
		return fmt.Sprintf("the files %q", strings.Join(o.cluster.cluster, " "))
	case o.cluster.context != "":
		return fmt.Sprintf("the cluster of context %q", o.cluster.context)
	case o.cluster.kubeconfig != "":
		return fmt.Sprintf("the cluster of %q", o.cluster.kubeconfig)
	}
	return "an example: name your cluster with --context, or its RuntimeClasses with --cluster"
}
