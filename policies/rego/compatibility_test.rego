package router.compatibility_test

import data.router.compatibility
import data.router.fixture

denied(spec, class) := answer if answer := {mark.field | some mark in compatibility.marks(class, "deny")} with input as fixture.untrusted(spec)

warned(spec, class) := answer if answer := {mark.field | some mark in compatibility.marks(class, "warn")} with input as fixture.untrusted(spec)

# Each row: a spec, the fields that gVisor denies, the fields that Kata denies.
rows := {
	"nothing": [{}, set(), set()],
	"host network": [{"hostNetwork": true}, {"spec.hostNetwork"}, {"spec.hostNetwork"}],
	"host network off": [{"hostNetwork": false}, set(), set()],
	"host pid": [{"hostPID": true}, {"spec.hostPID"}, {"spec.hostPID"}],
	"host ipc": [{"hostIPC": true}, {"spec.hostIPC"}, {"spec.hostIPC"}],
	"user namespace": [{"hostUsers": false}, {"spec.hostUsers"}, {"spec.hostUsers"}],
	"host users": [{"hostUsers": true}, set(), set()],
	"privileged": [
		{"containers": [{"name": "c", "securityContext": {"privileged": true}}]},
		{"spec.containers[0].securityContext.privileged"},
		{"spec.containers[0].securityContext.privileged"},
	],
	"privileged init container": [
		{"initContainers": [{"name": "a"}, {"name": "b", "securityContext": {"privileged": true}}]},
		{"spec.initContainers[1].securityContext.privileged"},
		{"spec.initContainers[1].securityContext.privileged"},
	],
	"privileged ephemeral container": [
		{"ephemeralContainers": [{"name": "a", "securityContext": {"privileged": true}}]},
		{"spec.ephemeralContainers[0].securityContext.privileged"},
		{"spec.ephemeralContainers[0].securityContext.privileged"},
	],
	"host path": [
		{"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/etc"}}]},
		{"spec.volumes[1].hostPath"},
		{"spec.volumes[1].hostPath"},
	],
	"raw block": [
		{"containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/dev/x"}]}]},
		{"spec.containers[0].volumeDevices"},
		set(),
	],
	"bidirectional mount": [
		{"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b", "mountPropagation": "Bidirectional"}]}]},
		{"spec.containers[0].volumeMounts[1].mountPropagation"},
		{"spec.containers[0].volumeMounts[1].mountPropagation"},
	],
	"gpu limit": [
		{"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
		{"spec.containers[0].resources[nvidia.com/gpu]"},
		{"spec.containers[0].resources[nvidia.com/gpu]"},
	],
	"part of a gpu, in an init container": [
		{"initContainers": [{"name": "c", "resources": {"requests": {"nvidia.com/mig-1g.5gb": "1"}}}]},
		{"spec.initContainers[0].resources[nvidia.com/mig-1g.5gb]"},
		{"spec.initContainers[0].resources[nvidia.com/mig-1g.5gb]"},
	],
	"another vendor's gpu": [
		{"containers": [{"name": "c", "resources": {"limits": {"amd.com/gpu": "1", "memory": "1Gi"}}}]},
		{"spec.containers[0].resources[amd.com/gpu]"},
		{"spec.containers[0].resources[amd.com/gpu]"},
	],
}

test_rows[name] if {
	some name, row in rows
	denied(row[0], fixture.gvisor) == row[1]
	denied(row[0], fixture.kata_fc) == row[2]
}

test_every_row_holds if count({name | test_rows[name]}) == count(rows)

test_every_rule_has_a_row if {
	every rule in {"host-network", "host-pid", "host-ipc", "host-users", "privileged", "host-path", "raw-block", "bidirectional-mount", "gpu"} {
		compatibility.table[rule]
	}
	count(compatibility.table) == 9
}

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
