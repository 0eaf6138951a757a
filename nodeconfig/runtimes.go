package nodeconfig

import "strings"

// runtime is how a node calls a runtime.
//
// Sources, read 2026-11-30: containerd's docs/cri/config.md and docs/snapshotters/devmapper.md;
// CRI-O's docs/crio.conf.5.md and pkg/config; gVisor's g3doc/user_guide/containerd
// (configuration.md, crio.md); kata-deploy's runtime/containerd.rs, runtime/crio.rs and
// utils/system.rs in kata-containers.
type runtime struct {
	Title string
	// Command is called as runc is. Kata Containers have had none since version 2.
	Command string
	// Shim speaks containerd's shim API, where the runtime brings one of its own: a
	// name that is looked up, or a path.
	Shim string
	// ShimType is containerd's runtime_type, of which * stands for the handler.
	ShimType string
	// File is what the shim reads.
	File string
	// TypeURL is the type of containerd's options for the shim.
	TypeURL string
	// StateRoot is CRI-O's runtime_root.
	StateRoot string
	// Guest: it boots one, to which the node must not hand its devices.
	Guest bool
	// BlockDevices: the guest shares no file system with the node.
	BlockDevices bool
	// Packaged: CRI-O's package brings it, and its table.
	Packaged bool
}

// runtimes are those that are known, by family.
var runtimes = map[string]runtime{
	"runc":  {Title: "runc", Command: "runc", StateRoot: "/run/runc", Packaged: true},
	"crun":  {Title: "crun", Command: "crun", StateRoot: "/run/crun", Packaged: true},
	"youki": {Title: "youki", Command: "youki", StateRoot: "/run/youki"},
	"gvisor": {
		Title: "gVisor", Command: "runsc", Shim: "containerd-shim-runsc-v1", ShimType: "io.containerd.runsc.v1",
		File: "/etc/containerd/*.toml", TypeURL: "io.containerd.runsc.v1.options", StateRoot: "/run/runsc",
	},
	"kata-qemu": kata("QEMU", "qemu"),
	"kata-clh":  kata("Cloud Hypervisor", "clh"),
	"kata-fc":   withoutSharing(kata("Firecracker", "fc")),
}

// kata is Kata Containers where its releases and kata-deploy put it.
func kata(hypervisor, configuration string) runtime {
	return runtime{
		Title: "Kata Containers on " + hypervisor, Shim: "/opt/kata/bin/containerd-shim-kata-v2", ShimType: "io.containerd.*.v2",
		File:      "/opt/kata/share/defaults/kata-containers/configuration-" + configuration + ".toml",
		StateRoot: "/run/vc", Guest: true,
	}
}

func withoutSharing(r runtime) runtime {
	r.BlockDevices = true
	return r
}

// forHandler puts a handler's name in. gVisor's usual settings are in runsc.toml, also
// where the handler is called gvisor; runsc-kvm has its own.
func (r runtime) forHandler(handler string) runtime {
	r.ShimType = strings.ReplaceAll(r.ShimType, "*", handler)
	if handler == "gvisor" {
		handler = "runsc"
	}
	r.File = strings.ReplaceAll(r.File, "*", handler)
	return r
}
