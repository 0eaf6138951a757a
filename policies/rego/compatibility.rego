# METADATA
# title: Compatibility
# description: |
#   What a pod asks for that a sandbox cannot give. A rule of `found` says that the
#   pod uses something, and where; its row of `table` says what that means by the
#   isolation of a class: deny rules the class out, prefer puts it behind classes
#   without the mark, warn lets it through with a warning, allow says nothing.
#   To add a rule, add a row and, where none of the rules finds it yet, a rule.
# schemas:
#   - data.config: schema.config
package router.compatibility

import data.router.custom

# METADATA
# title: The rows, by rule
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
	"host-path": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "a window to the host's files undoes the sandbox",
		"hint": "use an emptyDir, a PersistentVolumeClaim or a projected volume",
	},
	"raw-block": {
		"user-space-kernel": "deny",
		"guest-kernel": "allow",
		"reason": "gVisor has no raw block devices",
		"hint": "mount the volume as a file system, or ask for a Kata class",
	},
	"bidirectional-mount": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "mounts cannot propagate from a sandbox to the host",
		"hint": "use mountPropagation None",
	},
	"gpu": {
		"user-space-kernel": "deny",
		"guest-kernel": "deny",
		"reason": "this runtime is not listed as one that passes a GPU into the sandbox",
		"hint": "ask a cluster admin for a class in gpuRuntimes",
	},
}

# METADATA
# title: What the pod uses, as a rule's name and the field
# scope: rule
found contains use("host-network", "spec.hostNetwork") if input.pod.spec.hostNetwork

found contains use("host-pid", "spec.hostPID") if input.pod.spec.hostPID

found contains use("host-ipc", "spec.hostIPC") if input.pod.spec.hostIPC

found contains use("host-users", "spec.hostUsers") if input.pod.spec.hostUsers == false

found contains use("privileged", $"{at}.securityContext.privileged") if {
	some at, container in containers
	container.securityContext.privileged
}

found contains use("host-path", $"spec.volumes[{i}].hostPath") if {
	some i, volume in input.pod.spec.volumes
	volume.hostPath
	not harmless(volume)
}

found contains use("raw-block", $"{at}.volumeDevices") if {
	some at, container in containers
	count(container.volumeDevices) > 0
}

found contains use("bidirectional-mount", $"{at}.volumeMounts[{i}].mountPropagation") if {
	some at, container in containers
	some i, mount in container.volumeMounts
	mount.mountPropagation == "Bidirectional"
}

found contains use("gpu", $"{at}.resources[{resource}]") if {
	some at, container in containers
	some list in ["limits", "requests"]
	some resource, _ in container.resources[list]
	gpu(resource)
}

use(rule, field) := {"rule": rule, "field": field}

# Containers of every kind by the path of their field: a check of spec.containers
# alone would miss the privileged init container.
containers[$"spec.initContainers[{i}]"] := container if some i, container in input.pod.spec.initContainers

containers[$"spec.containers[{i}]"] := container if some i, container in input.pod.spec.containers

containers[$"spec.ephemeralContainers[{i}]"] := container if some i, container in input.pod.spec.ephemeralContainers

harmless(volume) if {
	volume.hostPath.path in data.config.allowedHostPaths
	every container in containers {
		every mount in object.get(container, "volumeMounts", []) {
			read_only(mount, volume.name)
		}
	}
}

read_only(mount, name) if mount.name != name

read_only(mount, _) if mount.readOnly

gpu(resource) if resource in data.config.gpuResources

gpu(resource) if {
	some pattern in data.config.gpuResources
	endswith(pattern, "*")
	startswith(resource, trim_suffix(pattern, "*"))
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

softened("gpu", class) := "allow" if listed(data.config.gpuRuntimes, class)

verdict(rule, class) := softer if {
	softer := softened(rule, class)
} else := table[rule][class.isolation]

# METADATA
# title: The marks of one verdict against a class, each with field, reason and hint
# scope: rule
marks(class, wanted) := {mark |
	some used in found
	verdict(used.rule, class) == wanted
	mark := object.union({"field": used.field}, object.filter(table[used.rule], ["reason", "hint"]))
} | {mark |
	some mark in custom.findings
	mark.verdict == wanted
	listed(mark.runtimes, class)
}
