package router.compatibility_test

import data.router.compatibility
import data.router.fixture

denied(spec, class) := answer if answer := {mark.field | some mark in compatibility.marks(class, "deny")} with input as fixture.untrusted(spec) with data.catalog as {"runtimeClasses": [class]}

warned(spec, class) := answer if answer := {mark.field | some mark in compatibility.marks(class, "warn")} with input as fixture.untrusted(spec) with data.catalog as {"runtimeClasses": [class]}

# Each row: a spec, the fields that gVisor denies, the fields that Kata denies.
rows := {
	"nothing": [{}, set(), set()],
	"host network": [{"hostNetwork": true}, {"spec.hostNetwork"}, {"spec.hostNetwork"}],
	"host network off": [{"hostNetwork": false}, set(), set()],
	"host pid": [{"hostPID": true}, {"spec.hostPID"}, {"spec.hostPID"}],
	"host ipc": [{"hostIPC": true}, {"spec.hostIPC"}, {"spec.hostIPC"}],
	"user namespace": [{"hostUsers": false}, {"spec.hostUsers"}, {"spec.hostUsers"}],
	"host users": [{"hostUsers": true}, set(), set()],
	"privileged": [{"containers": [{"name": "c", "securityContext": {"privileged": true}}]}, {"spec.containers[0].securityContext.privileged"}, {"spec.containers[0].securityContext.privileged"}],
	"privileged init container": [{"initContainers": [{"name": "a"}, {"name": "b", "securityContext": {"privileged": true}}]}, {"spec.initContainers[1].securityContext.privileged"}, {"spec.initContainers[1].securityContext.privileged"}],
	"privileged sidecar": [{"initContainers": [{"name": "a", "restartPolicy": "Always", "securityContext": {"privileged": true}}]}, {"spec.initContainers[0].securityContext.privileged"}, {"spec.initContainers[0].securityContext.privileged"}],
	"privileged ephemeral container": [{"ephemeralContainers": [{"name": "a", "securityContext": {"privileged": true}}]}, {"spec.ephemeralContainers[0].securityContext.privileged"}, {"spec.ephemeralContainers[0].securityContext.privileged"}],
	"net admin": [{"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}}}]}, {"spec.containers[0].securityContext.capabilities.add[NET_ADMIN]"}, set()],
	"net raw, with a prefix": [{"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["CAP_NET_RAW"]}}}]}, {"spec.containers[0].securityContext.capabilities.add[CAP_NET_RAW]"}, set()],
	"all capabilities": [{"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["ALL"]}}}]}, {"spec.containers[0].securityContext.capabilities.add[ALL]"}, set()],
	"tracing": [{"volumes": [{"name": "a", "hostPath": {"path": "/sys/kernel/debug"}}, {"name": "b", "hostPath": {"path": "/lib/modules"}}]}, {"spec.volumes[0].hostPath", "spec.volumes[1].hostPath"}, {"spec.volumes[0].hostPath", "spec.volumes[1].hostPath"}],
	"socket": [{"volumes": [{"name": "a", "hostPath": {"path": "/run/docker.sock", "type": "Socket"}}]}, {"spec.volumes[0].hostPath"}, {"spec.volumes[0].hostPath"}],
	"device": [{"volumes": [{"name": "a", "hostPath": {"path": "/dev/fuse"}}, {"name": "b", "hostPath": {"path": "/x", "type": "CharDevice"}}]}, {"spec.volumes[0].hostPath", "spec.volumes[1].hostPath"}, {"spec.volumes[0].hostPath", "spec.volumes[1].hostPath"}],
	"host path": [{"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/etc"}}]}, {"spec.volumes[1].hostPath"}, {"spec.volumes[1].hostPath"}],
	"raw block": [{"containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/dev/x"}]}]}, {"spec.containers[0].volumeDevices"}, set()],
	"bidirectional mount": [{"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b", "mountPropagation": "Bidirectional"}]}]}, {"spec.containers[0].volumeMounts[1].mountPropagation"}, {"spec.containers[0].volumeMounts[1].mountPropagation"}],
	"recursive read-only": [{"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]}]}, {"spec.containers[0].volumeMounts[0].recursiveReadOnly"}, {"spec.containers[0].volumeMounts[0].recursiveReadOnly"}],
	"recursive read-only if possible": [{"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a", "recursiveReadOnly": "IfPossible"}]}]}, set(), set()],
	"image volume": [{"volumes": [{"name": "a", "image": {"reference": "r"}}]}, {"spec.volumes[0].image"}, set()],
	"gpu limit": [{"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, {"spec.containers[0].resources[nvidia.com/gpu]"}, {"spec.containers[0].resources[nvidia.com/gpu]"}],
	"part of a gpu, in an init container": [{"initContainers": [{"name": "c", "resources": {"requests": {"nvidia.com/mig-1g.5gb": "1"}}}]}, {"spec.initContainers[0].resources[nvidia.com/mig-1g.5gb]"}, {"spec.initContainers[0].resources[nvidia.com/mig-1g.5gb]"}],
	"another vendor's gpu": [{"containers": [{"name": "c", "resources": {"limits": {"amd.com/gpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}}}]}, {"spec.containers[0].resources[amd.com/gpu]"}, {"spec.containers[0].resources[amd.com/gpu]"}],
	"resource claim": [{"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}, {"spec.resourceClaims"}, {"spec.resourceClaims"}],
	"device plugin": [{"containers": [{"name": "c", "resources": {"limits": {"smarter-devices/fuse": "1"}}}]}, {"spec.containers[0].resources[smarter-devices/fuse]"}, {"spec.containers[0].resources[smarter-devices/fuse]"}],
	"selinux of the pod": [{"securityContext": {"seLinuxOptions": {"level": "s0"}}}, {"spec.securityContext.seLinuxOptions"}, set()],
	"selinux of a container": [{"containers": [{"name": "c", "securityContext": {"seLinuxOptions": {"level": "s0"}}}]}, {"spec.containers[0].securityContext.seLinuxOptions"}, set()],
	"safe sysctl": [{"securityContext": {"sysctls": [{"name": "net/ipv4/tcp_syncookies", "value": "1"}]}}, set(), set()],
	"unsafe sysctl": [{"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}, {"spec.securityContext.sysctls[net.core.somaxconn]"}, {"spec.securityContext.sysctls[net.core.somaxconn]"}],
	"windows by os": [{"os": {"name": "windows"}}, {"spec.os.name"}, {"spec.os.name"}],
	"windows by selector": [{"nodeSelector": {"kubernetes.io/os": "windows"}}, {"spec.nodeSelector[kubernetes.io/os]"}, {"spec.nodeSelector[kubernetes.io/os]"}],
	"windows by affinity": [{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}]}}}}, {"spec.affinity.nodeAffinity"}, {"spec.affinity.nodeAffinity"}],
	"linux or windows": [{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}, {"matchExpressions": [{"key": "x", "operator": "Exists"}]}]}}}}, set(), set()],
	"virtual node by selector": [{"nodeSelector": {"type": "virtual-kubelet"}}, {"spec.nodeSelector[type]"}, {"spec.nodeSelector[type]"}],
	"virtual node by scheduler": [{"schedulerName": "fargate-scheduler"}, {"spec.schedulerName"}, {"spec.schedulerName"}],
	"virtual node by toleration": [{"tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}]}, {"spec.tolerations[virtual-kubelet.io/provider]"}, {"spec.tolerations[virtual-kubelet.io/provider]"}],
	"what works": [{"shareProcessNamespace": true, "volumes": [{"name": "e", "emptyDir": {}}], "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}], "volumeMounts": [{"name": "e", "mountPath": "/e", "subPath": "a"}]}]}, set(), set()],
}

# Each row: what a class of some kind has against a spec without being ruled out.
softer := {
	"kernel capabilities on gVisor": ["prefer", fixture.gvisor, {"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}, {"spec.containers[0].securityContext.capabilities.add[SYS_ADMIN]"}],
	"kernel capabilities on Kata": ["warn", fixture.kata_qemu, {"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["CAP_BPF"]}}}]}, {"spec.containers[0].securityContext.capabilities.add[CAP_BPF]"}],
	"huge pages on gVisor": ["prefer", fixture.gvisor, {"containers": [{"name": "c", "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}]}, {"spec.containers[0].resources[hugepages-2Mi]"}],
	"huge pages in memory": ["prefer", fixture.gvisor, {"volumes": [{"name": "a", "emptyDir": {"medium": "HugePages-2Mi"}}]}, {"spec.volumes[0].emptyDir.medium"}],
	"a claim under Firecracker": ["prefer", fixture.kata_fc, {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]}, {"spec.volumes[0].persistentVolumeClaim"}],
	"an inline CSI volume under Firecracker": ["prefer", fixture.kata_fc, {"volumes": [{"name": "a", "csi": {"driver": "d"}}]}, {"spec.volumes[0].csi"}],
	"a config map under Firecracker": ["warn", fixture.kata_fc, {"volumes": [{"name": "a", "configMap": {"name": "a"}}]}, {"spec.volumes[0].configMap"}],
	"mounts from the host": ["warn", fixture.gvisor, {"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a", "mountPropagation": "HostToContainer"}]}]}, {"spec.containers[0].volumeMounts[0].mountPropagation"}],
	"selinux on Kata": ["warn", fixture.kata_qemu, {"securityContext": {"seLinuxOptions": {"level": "s0"}}}, {"spec.securityContext.seLinuxOptions"}],
	"seccomp": ["warn", fixture.gvisor, {"containers": [{"name": "c", "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p"}}}]}, {"spec.containers[0].securityContext.seccompProfile"}],
	"apparmor": ["warn", fixture.kata_qemu, {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}}, {"spec.securityContext.appArmorProfile"}],
	"sysctl on gVisor": ["prefer", fixture.gvisor, {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}}, {"spec.securityContext.sysctls[kernel.shm_rmid_forced]"}],
	"unmasked proc": ["warn", fixture.kata_qemu, {"containers": [{"name": "c", "securityContext": {"procMount": "Unmasked"}}]}, {"spec.containers[0].securityContext.procMount"}],
}

test_softer[name] if {
	some name, row in softer
	fields := {mark.field | some mark in compatibility.marks(row[1], row[0])} with input as fixture.untrusted(row[2]) with data.catalog as {"runtimeClasses": [row[1]]}
	fields == row[3]
	denied(row[2], row[1]) == set()
}

test_every_softer_row_holds if count({name | test_softer[name]}) == count(softer)

test_a_claim_as_a_raw_block_device if {
	spec := {
		"containers": [{"name": "c", "volumeDevices": [{"name": "a", "devicePath": "/dev/a"}]}],
		"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}],
	}
	marks := compatibility.marks(fixture.kata_fc, "prefer") with input as fixture.untrusted(spec) with data.catalog as fixture.cluster
	marks == set()
}

test_a_config_map_elsewhere if warned({"volumes": [{"name": "a", "configMap": {"name": "a"}}]}, fixture.kata_qemu) == set()

# Every rule that is found has a row, and every row is found by some spec of the tests.
test_rules_and_rows_agree if {
	by_rows := {used.rule |
		some row in rows
		some used in data.router.uses.found with input as fixture.untrusted(row[0])
	}
	by_softer := {used.rule |
		some row in softer
		some used in data.router.uses.found with input as fixture.untrusted(row[2]) with data.catalog as {"runtimeClasses": [row[1]]}
	}
	by_others := {"allowed-host-path", "runtime-annotation"}
	(by_rows | by_softer) | by_others == object.keys(compatibility.table)
}

test_host_path_below_is_by_whole_names if {
	denied_rule("/proc") == "host-tracing"
	denied_rule("/proc/sys") == "host-tracing"
	denied_rule("//proc/./") == "host-tracing"
	denied_rule("/") == "host-path"
	denied_rule("/process") == "host-path"
	denied_rule("/dev") == "host-device"
	denied_rule("/developers") == "host-path"
}

denied_rule(path) := used.rule if {
	some used in data.router.uses.found with input as fixture.untrusted({"volumes": [{"name": "a", "hostPath": {"path": path}}]})
}

test_tracing_is_not_allowed_by_path if {
	spec := {"volumes": [{"name": "a", "hostPath": {"path": "/proc"}}]}
	denied(spec, fixture.gvisor) == {"spec.volumes[0].hostPath"} with data.config.allowedHostPaths as ["/proc"]
}

test_allowed_host_path_under_firecracker if {
	spec := {"volumes": [{"name": "a", "hostPath": {"path": "/srv"}}]}
	denied(spec, fixture.kata_fc) == {"spec.volumes[0].hostPath"} with data.config.allowedHostPaths as ["/srv"]
	denied(spec, fixture.kata_qemu) == set() with data.config.allowedHostPaths as ["/srv"]
}

annotated(key) := json.patch(fixture.untrusted({}), [{"op": "add", "path": "/pod/metadata/annotations", "value": {key: "x", "note": "y"}}])

test_runtime_annotations if {
	every key in ["dev.gvisor.spec.mount.a", "io.katacontainers.config.hypervisor.kernel_params", "io.kubernetes.cri.untrusted-workload"] {
		fields := {mark.field | some mark in compatibility.marks(fixture.gvisor, "deny")} with input as annotated(key) with data.catalog as fixture.cluster
		fields == {$"metadata.annotations[{key}]"}
	}
	allowed := compatibility.marks(fixture.gvisor, "deny") with input as annotated("dev.gvisor.a")
		with data.config.allowedRuntimeAnnotations as ["dev.gvisor.*"]
	allowed == set()
}

test_allowed_by_configuration if {
	fuse := {"containers": [{"name": "c", "resources": {"limits": {"smarter-devices/fuse": "1"}}}]}
	denied(fuse, fixture.gvisor) == set() with data.config.allowedDeviceResources as ["smarter-devices/*"]
	somaxconn := {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}
	denied(somaxconn, fixture.kata_fc) == set() with data.config.allowedUnsafeSysctls as ["net.core.*"]
}

test_recursive_read_only_of_the_handler if {
	spec := {"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]}]}
	denied(spec, object.union(fixture.gvisor, {"recursiveReadOnlyMounts": true})) == set()
}

test_fargate_label if {
	asked := fixture.asked({}, {"runtimeclass-router.io/trust": "untrusted"}, {"eks.amazonaws.com/fargate-profile": "p"})
	fields := {mark.field | some mark in compatibility.marks(fixture.gvisor, "deny")} with input as asked with data.catalog as fixture.cluster
	fields == {"metadata.labels[eks.amazonaws.com/fargate-profile]"}
}

test_rows[name] if {
	some name, row in rows
	denied(row[0], fixture.gvisor) == row[1]
	denied(row[0], fixture.kata_fc) == row[2]
}

test_every_row_holds if count({name | test_rows[name]}) == count(rows)

test_every_row_has_words if {
	every row in compatibility.table {
		row.reason != ""
		row.hint != ""
		row["user-space-kernel"] in {"deny", "prefer", "warn", "allow"}
		row["guest-kernel"] in {"deny", "prefer", "warn", "allow"}
	}
}

test_allowed_host_path_must_be_read_only if {
	mounted := {"volumes": [{"name": "tz", "hostPath": {"path": "/usr/share/zoneinfo"}}], "containers": [{"name": "c", "volumeMounts": [
		{"name": "tz", "mountPath": "/tz", "readOnly": true},
		{"name": "other", "mountPath": "/o"},
	]}]}
	writable := object.union(mounted, {"initContainers": [{"name": "i", "volumeMounts": [{"name": "tz", "mountPath": "/tz"}]}]})
	denied(mounted, fixture.gvisor) == set() with data.config.allowedHostPaths as ["/usr/share/zoneinfo"]
	denied(writable, fixture.gvisor) == {"spec.volumes[0].hostPath"} with data.config.allowedHostPaths as ["/usr/share/zoneinfo"]
	denied(mounted, fixture.gvisor) == {"spec.volumes[0].hostPath"} with data.config.allowedHostPaths as ["/usr/share"]
}

privileged := {"containers": [{"name": "c", "securityContext": {"privileged": true}}]}

test_privileged_where_host_devices_are_withheld if {
	kata := object.union(fixture.kata_fc, {"hostDevicesWithheld": true})
	denied(privileged, kata) == set()
	warned(privileged, kata) == {"spec.containers[0].securityContext.privileged"}
	sentry := object.union(fixture.gvisor, {"hostDevicesWithheld": true})
	count(denied(privileged, sentry)) == 1
}

test_privileged_by_configuration if {
	warned(privileged, fixture.gvisor) == {"spec.containers[0].securityContext.privileged"} with data.config.privilegedRuntimes as ["gvisor"]
	count(denied(privileged, fixture.kata_fc)) == 1 with data.config.privilegedRuntimes as ["gvisor"]
}

test_user_namespaces_of_the_handler if denied({"hostUsers": false}, object.union(fixture.gvisor, {"userNamespaces": true})) == set()

test_gpu_runtimes if {
	spec := {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
	denied(spec, fixture.kata_qemu) == set() with data.config.gpuRuntimes as ["class:vm"]
	count(denied(spec, fixture.kata_fc)) == 1 with data.config.gpuRuntimes as ["class:vm"]
}
