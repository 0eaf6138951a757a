package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/nodeconfig"
)

const nodeConfigCluster = "../../nodeconfig/testdata/cluster.yaml"

// TestNodeConfig prints every kind of file, whole. Standard error comes first, as on a
// terminal.
func TestNodeConfig(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"example":       {"--cri", "containerd"},
		"containerd-3":  {"--cri", "containerd", "--cluster", nodeConfigCluster, "--cgroup-driver", "cgroupfs", "--binary", "youki=/opt/youki,gvisor=/opt/shim", "--snapshotter", "kata-clh=blockfile"},
		"containerd-2":  {"--cri", "containerd", "--cluster", nodeConfigCluster, "--config-version", "2"},
		"gvisor-pool":   {"--cri", "containerd", "--cluster", nodeConfigCluster, "--handlers", "gvisor", "--default-runtime", "runc"},
		"crio":          {"--cri", "crio", "--cluster", nodeConfigCluster, "--binary", "crun=/usr/bin/crun", "--default-runtime", ""},
		"crio-packaged": {"--cri", "crio", "--cluster", nodeConfigCluster, "--handlers", "crun,kata-qemu", "--runtime-config", "kata-qemu=/etc/kata.toml"},
		"podman":        {"--cri", "podman", "--cluster", nodeConfigCluster, "--binary", "youki=/opt/youki,gvisor=/opt/runsc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := run(t, "", append([]string{"node-config"}, args...)...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "../node-config/"+name, errOut+out)
		})
	}
}

// TestNodeConfigReadsStdin, as kubectl prints RuntimeClasses; a command that reads its
// manifests there says so.
func TestNodeConfigReadsStdin(t *testing.T) {
	t.Parallel()
	const list = `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandbox"}, "handler": "runsc"}]}`
	out, _, err := run(t, list, "node-config", "--cri", "containerd", "--cluster", "-")
	if err != nil || !strings.Contains(out, "runtime class sandbox.") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := run(t, list, "route", "-f", examples, "--cluster", "-"); err == nil || !strings.Contains(err.Error(), "standard input is not read here") {
		t.Errorf("route --cluster -: %v", err)
	}
}

func TestNodeConfigRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, want string }{
		{"", `required flag(s) "cri" not set`},
		{"--cri cri-o", `--cri "cri-o": use containerd, crio, docker or podman`},
		{"--cri crio --config-version 2", "--config-version changes nothing with --cri crio"},
		{"--cri podman --snapshotter kata-fc=devmapper", "--snapshotter changes nothing with --cri podman"},
		{"--cri containerd --config-version 4", "configuration version 4 of containerd: use 2"},
		{"--cri containerd --cgroup-driver cgroupv2", `--cgroup-driver "cgroupv2": use systemd or cgroupfs`},
		{"--cri containerd --handlers gvisor", `handler "gvisor": no RuntimeClass has it; there are crun, kata-clh`},
		{"--cri containerd --default-runtime gvisor", `default runtime "gvisor": no such handler is configured`},
		{"--cri containerd --cluster x.yaml --context prod", "give one of them"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, "", append([]string{"node-config"}, strings.Fields(test.args)...)...)
			if err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("got %v and output %q, want %q", err, out, test.want)
			}
		})
	}
	if out, _, err := run(t, "", "node-config", "--cri", "docker"); !errors.Is(err, nodeconfig.ErrDocker) || out != "" {
		t.Errorf("docker: %v, output %q", err, out)
	}
}
