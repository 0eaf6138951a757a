# METADATA
# title: Uses
# description: |
#   What the pod uses that a sandbox may not give, each as the name of a row in
#   compatibility.table and the field. Paths are written out, so that the engine can
#   tell which fields a decision read.
# schemas:
#   - data.config: schema.config
package router.uses

import data.router.elsewhere

# METADATA
# title: What the pod uses, as a rule's name and the field
# scope: rule
found contains use("host-network", "spec.hostNetwork") if input.pod.spec.hostNetwork

found contains use("host-pid", "spec.hostPID") if input.pod.spec.hostPID

found contains use("host-ipc", "spec.hostIPC") if input.pod.spec.hostIPC

found contains use("host-users", "spec.hostUsers") if input.pod.spec.hostUsers == false

# --- containers ------------------------------------------------------------------

found contains use("privileged", $"{at}.securityContext.privileged") if {
	some at, container in containers
	container.securityContext.privileged
}

found contains use(rule, $"{at}.securityContext.capabilities.add[{given}]") if {
	some rule, names in capability_rules
	some at, container in containers
	some given in container.securityContext.capabilities.add
	name := trim_prefix(upper(given), "CAP_")
	name in names
}

# ALL counts as each of them.
capability_rules := {
	"net-capabilities": {"ALL", "NET_ADMIN", "NET_RAW"},
	"kernel-capabilities": {"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "BPF", "PERFMON"},
}

found contains use("raw-block", $"{at}.volumeDevices") if {
	some at, container in containers
	count(container.volumeDevices) > 0
}

found contains use(propagation_rules[mount.mountPropagation], $"{at}.volumeMounts[{i}].mountPropagation") if {
	some at, container in containers
	some i, mount in container.volumeMounts
}

propagation_rules := {"Bidirectional": "bidirectional-mount", "HostToContainer": "host-to-container-mount"}

found contains use("recursive-read-only", $"{at}.volumeMounts[{i}].recursiveReadOnly") if {
	some at, container in containers
	some i, mount in container.volumeMounts
	mount.recursiveReadOnly == "Enabled"
}

found contains use("proc-mount", $"{at}.securityContext.procMount") if {
	some at, container in containers
	container.securityContext.procMount == "Unmasked"
}

# --- resources -------------------------------------------------------------------

found contains use(resource_rule(resource), $"{at}.resources[{resource}]") if {
	some at, container in containers
	some list in ["limits", "requests"]
	some resource in (object.keys(container.resources[list]) - {"cpu", "memory", "ephemeral-storage"})
}

resource_rule(resource) := "hugepages" if {
	startswith(resource, "hugepages-")
} else := "gpu" if {
	named(data.config.gpuResources, resource)
} else := "device-resource" if {
	contains(resource, "/")
	not named(data.config.allowedDeviceResources, resource)
}

found contains use("gpu", "spec.resourceClaims") if count(input.pod.spec.resourceClaims) > 0

# --- volumes -----------------------------------------------------------------------

found contains use(host_path_rule(volume), $"spec.volumes[{i}].hostPath") if {
	some i, volume in input.pod.spec.volumes
	volume.hostPath
}

host_path_rule(volume) := "host-tracing" if {
	below(volume.hostPath.path, {"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/proc", "/lib/modules"})
} else := "host-device" if {
	below(volume.hostPath.path, {"/dev"})
} else := "host-device" if {
	volume.hostPath.type in {"CharDevice", "BlockDevice"}
} else := "host-socket" if {
	volume.hostPath.type in {"Socket", "FIFO"}
} else := "allowed-host-path" if {
	clean(volume.hostPath.path) in data.config.allowedHostPaths
	every container in containers {
		every mount in object.get(container, "volumeMounts", []) {
			read_only(mount, volume.name)
		}
	}
} else := "host-path"

below(path, roots) if {
	some root in roots
	startswith($"{clean(path)}/", $"{root}/")
}

# A path as the kernel reads it: //proc/. is /proc.
clean(path) := concat("/", array.concat([""], [part | some part in split(path, "/"); not part in {"", "."}]))

read_only(mount, name) if mount.name != name

read_only(mount, _) if mount.readOnly

found contains use("hugepages", $"spec.volumes[{i}].emptyDir.medium") if {
	some i, volume in input.pod.spec.volumes
	startswith(volume.emptyDir.medium, "HugePages")
}

found contains use(rule, $"spec.volumes[{i}].{kind}") if {
	some i, volume in input.pod.spec.volumes
	some kind, rule in volume_rules
	volume[kind]
	not device(volume.name)
}

# A claim that is a raw block device shares no file system.
device(name) if {
	some container in containers
	some used in container.volumeDevices
	used.name == name
}

volume_rules := {
	"image": "image-volume",
	"csi": "volume-claim",
	"ephemeral": "volume-claim",
	"persistentVolumeClaim": "volume-claim",
	"configMap": "updated-volume",
	"secret": "updated-volume",
	"projected": "updated-volume",
}

# --- security context ----------------------------------------------------------------

# Of the pod and of each container, by the path of its field.
contexts["spec.securityContext"] := input.pod.spec.securityContext

contexts[$"{at}.securityContext"] := container.securityContext if some at, container in containers

found contains use("se-linux", $"{at}.seLinuxOptions") if {
	some at, context in contexts
	context.seLinuxOptions
}

found contains use("security-profile", $"{at}.{kind}") if {
	some at, context in contexts
	some kind in ["appArmorProfile", "seccompProfile"]
	context[kind].type == "Localhost"
}

found contains use(sysctl_rule(sysctl.name), $"spec.securityContext.sysctls[{sysctl.name}]") if {
	some sysctl in input.pod.spec.securityContext.sysctls
}

sysctl_rule(name) := "sysctl" if {
	sysctl(name) in safe_sysctls
} else := "sysctl" if {
	named(data.config.allowedUnsafeSysctls, sysctl(name))
} else := "unsafe-sysctl"

# Kubernetes takes slashes for dots.
sysctl(name) := replace(name, "/", ".")

# Those that a kubelet takes without being told to (Kubernetes, "Using sysctls").
safe_sysctls := {
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}

# --- the pod as a whole -----------------------------------------------------------------

found contains use("runtime-annotation", $"metadata.annotations[{key}]") if {
	some key, _ in input.pod.metadata.annotations
	some prefix in runtime_prefixes
	startswith(key, prefix)
	not named(data.config.allowedRuntimeAnnotations, key)
}

# Package policies counts on these (reads.go): an annotation of another name is not read.
runtime_prefixes := ["dev.gvisor.", "io.katacontainers.", "io.kubernetes.cri.untrusted-workload"]

found contains use("windows", elsewhere.windows) if elsewhere.windows

found contains use("virtual-node", elsewhere.virtual) if elsewhere.virtual

use(rule, field) := {"rule": rule, "field": field}

# Containers of every kind by the path of their field: a check of spec.containers
# alone would miss the privileged init container.
containers[$"spec.initContainers[{i}]"] := container if some i, container in input.pod.spec.initContainers

containers[$"spec.containers[{i}]"] := container if some i, container in input.pod.spec.containers

containers[$"spec.ephemeralContainers[{i}]"] := container if some i, container in input.pod.spec.ephemeralContainers

# METADATA
# title: Whether a list of names has one; a trailing * matches any rest
# scope: rule
named(names, name) if name in names

named(names, name) if {
	some pattern in names
	endswith(pattern, "*")
	startswith(name, trim_suffix(pattern, "*"))
}
