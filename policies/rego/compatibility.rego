# METADATA
# title: Compatibility
# description: |
#   What a pod uses that a sandbox cannot give. uses.rego finds it; here stands what it
#   means by the runtime of a class: deny rules the class out, prefer puts it behind
#   classes without the mark, warn lets it through with a warning, allow says nothing.
#   To add a rule, add a row here and, where none of the rules there finds it yet, a
#   rule there.
# schemas:
#   - data.catalog: schema.catalog
#   - data.config: schema.config
package router.compatibility

import data.router.custom
import data.router.uses

# METADATA
# title: The rows, by rule
# description: |
#   A verdict is looked up by the class's family first and by its isolation else, so
#   that Kata on Firecracker, which shares no file system with the host, can differ
#   from other Katas.
# scope: rule
table := {
	"host-network": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the host's network is not reachable from a sandbox",
		"hint": "use the pod network, with a Service or a hostPort",
	},
	"host-pid": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the host's processes are not visible from a sandbox",
		"hint": "remove hostPID",
	},
	"host-ipc": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the host's IPC is not reachable from a sandbox",
		"hint": "remove hostIPC",
	},
	"host-users": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the nodes do not report user namespaces for this runtime and would refuse the pod",
		"hint": "remove hostUsers: false, the sandbox isolates already",
	},
	"privileged": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a privileged container may be given the host's devices",
		"hint": "drop privileged and add the capabilities that are needed",
	},
	"net-capabilities": {
		"user-space-kernel": "deny",
		"guest-kernel": "allow",
		"reason": "gVisor's iptables support is partial, and containers that program it fail in a loop",
		"hint": "use istio-cni or ambient mode instead of an init container, or ask for a Kata class",
	},
	"kernel-capabilities": {
		"user-space-kernel": "prefer",
		"guest-kernel": "warn",
		"reason": "the capability reaches the sandbox's kernel and not the host's",
		"hint": "check that this is what the workload needs",
	},
	"host-tracing": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "tracing would start and report a kernel that runs nothing else",
		"hint": "run tracers in a trusted namespace",
	},
	"host-socket": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a socket or pipe of the host does not reach into a sandbox",
		"hint": "use a Service",
	},
	"host-device": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "device paths in a sandbox are the sandbox's own",
		"hint": "ask a cluster admin for a device plugin resource in allowedDeviceResources",
	},
	"host-path": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a window to the host's files undoes the sandbox",
		"hint": "use an emptyDir, a PersistentVolumeClaim or a projected volume",
	},
	"allowed-host-path": {
		"user-space-kernel": "allow",
		"guest-kernel": "allow",
		"kata-fc": "deny",
		"reason": "Firecracker shares no file system with the host",
		"hint": "ask for another class",
	},
	"raw-block": {
		"user-space-kernel": "deny",
		"guest-kernel": "allow",
		"reason": "gVisor has no raw block devices",
		"hint": "mount the volume as a file system, or ask for a Kata class",
	},
	"hugepages": {
		"user-space-kernel": "prefer",
		"guest-kernel": "allow",
		"reason": "gVisor does not back huge pages",
		"hint": "ask for a Kata class",
	},
	"volume-claim": {
		"user-space-kernel": "allow",
		"guest-kernel": "allow",
		"kata-fc": "prefer",
		"reason": "Firecracker shares no file system with the host, so the volume is copied or slow",
		"hint": "ask for another class",
	},
	"bidirectional-mount": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "mounts cannot propagate from a sandbox to the host",
		"hint": "use mountPropagation None",
	},
	"host-to-container-mount": {
		"user-space-kernel": "warn",
		"guest-kernel": "warn",
		"reason": "nothing in a sandbox's volumes is mounted from the host later on",
		"hint": "use mountPropagation None",
	},
	"recursive-read-only": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the nodes do not report recursive read-only mounts for this runtime and would refuse the pod",
		"hint": "use recursiveReadOnly IfPossible",
	},
	"image-volume": {
		"user-space-kernel": "deny",
		"guest-kernel": "allow",
		"reason": "gVisor has no image volumes",
		"hint": "copy the image's files in an init container, or ask for a Kata class",
	},
	"updated-volume": {
		"user-space-kernel": "allow",
		"guest-kernel": "allow",
		"kata-fc": "warn",
		"reason": "later updates of the volume do not arrive under Firecracker",
		"hint": "restart the pod after a change, or ask for another class",
	},
	"gpu": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "this runtime is not listed as one that passes a GPU into the sandbox",
		"hint": "ask a cluster admin for a class in gpuRuntimes",
	},
	"device-resource": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a device of the host is not passed into a sandbox",
		"hint": "ask a cluster admin to list the resource in allowedDeviceResources",
	},
	"se-linux": {
		"user-space-kernel": "deny",
		"guest-kernel": "warn",
		"reason": "the label is not applied in a sandbox, and gVisor does not start with one",
		"hint": "remove seLinuxOptions",
	},
	"security-profile": {
		"user-space-kernel": "warn",
		"guest-kernel": "warn",
		"reason": "a Localhost profile is not enforced in a sandbox",
		"hint": "do not rely on it",
	},
	"sysctl": {
		"user-space-kernel": "prefer",
		"guest-kernel": "allow",
		"reason": "gVisor implements few sysctls",
		"hint": "ask for a Kata class",
	},
	"unsafe-sysctl": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "the kubelet refuses an unsafe sysctl in a loop unless it is configured for it",
		"hint": "remove it, or ask a cluster admin to list it in allowedUnsafeSysctls",
	},
	"proc-mount": {
		"user-space-kernel": "warn",
		"guest-kernel": "warn",
		"reason": "an unmasked /proc shows the sandbox's kernel",
		"hint": "do not rely on it",
	},
	"runtime-annotation": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "annotations that configure the runtime can open the sandbox",
		"hint": "remove it, or ask a cluster admin to list it in allowedRuntimeAnnotations",
	},
	"windows": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "no sandbox runs Windows",
		"hint": "run it in a trusted namespace",
	},
	"virtual-node": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a virtual node has no runtime that could be chosen",
		"hint": "remove what selects it",
	},
}

# METADATA
# title: Whether a runtime of a list in the configuration means this class
# description: A runtime is the class's family, or the class itself as `class:NAME`.
# scope: rule
means(runtime, class) if runtime == class.family

means(runtime, class) if runtime == $"class:{class.name}"

listed(runtimes, class) if {
	some runtime in runtimes
	means(runtime, class)
}

# Facts of the class, or of the configuration, that soften a row.
softened("privileged", class) := "warn" if listed(data.config.privilegedRuntimes, class)

softened("privileged", class) := "warn" if {
	class.isolation == "guest-kernel"
	class.hostDevicesWithheld
}

softened("host-users", class) := "allow" if class.userNamespaces

softened("recursive-read-only", class) := "allow" if class.recursiveReadOnlyMounts

softened("gpu", class) := "allow" if listed(data.config.gpuRuntimes, class)

# What of a class a verdict depends on: many classes are of few kinds. No pod is read, so
# kinds and verdicts are worked out once.
kinds := {class.name: kind(class) | some class in array.concat([unknown], data.catalog.runtimeClasses)}

kind(class) := {
	"family": class.family,
	"isolation": class.isolation,
	"softer": {rule: answer | some rule in {"privileged", "host-users", "recursive-read-only", "gpu"}; answer := softened(rule, class)},
}

verdicts[kind] := {rule: verdict(rule, kind) | some rule, _ in table} if some kind in {of_class | some of_class in kinds}

verdict(rule, kind) := softer if {
	softer := kind.softer[rule]
} else := known if {
	known := table[rule][kind.family]
} else := table[rule][kind.isolation]

# METADATA
# title: The marks of one verdict against a class, each with field, reason and hint
# scope: rule
marks(class, wanted) := built_in(class, wanted) if {
	count(custom.findings) == 0
} else := built_in(class, wanted) | {mark |
	some mark in custom.findings
	mark.verdict == wanted
	listed(mark.runtimes, class)
}

built_in(class, wanted) := {{"field": used.field, "reason": row.reason, "hint": row.hint} |
	some used in uses.found
	verdicts[kinds[class.name]][used.rule] == wanted
	row := table[used.rule]
}

# METADATA
# title: A class of which nothing is known but that it is a sandbox
# scope: rule
unknown := {
	"name": "", "family": "", "isolation": "user-space-kernel",
	"hostDevicesWithheld": false, "userNamespaces": false, "recursiveReadOnlyMounts": false,
}

# METADATA
# title: What is wrong with findings of the hooks
# scope: rule
faults contains $"the policy is at fault: verdict \"{mark.verdict}\" of a router.custom finding is not deny, prefer or warn" if {
	some mark in custom.findings
	not mark.verdict in {"deny", "prefer", "warn"}
}

faults contains $"the policy is at fault: a router.custom finding lacks {key}" if {
	some mark in custom.findings
	some key in ({"field", "verdict", "runtimes", "reason", "hint"} - object.keys(mark))
}
