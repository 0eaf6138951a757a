# What the tests beside the rules share: a cluster, and ways to ask about a pod in it.
package router.fixture

class(name, handler, family, isolation) := {
	"name": name, "handler": handler, "family": family, "isolation": isolation,
	"nodeSelector": {"pool": name}, "tolerations": [],
	"hostDevicesWithheld": false, "poolReady": true, "everywhere": true, "userNamespaces": false, "recursiveReadOnlyMounts": false,
}

crun := class("crun", "crun", "crun", "host-kernel")

gvisor := class("gvisor", "runsc", "gvisor", "user-space-kernel")

kata_fc := class("kata-fc", "kata-fc", "kata-fc", "guest-kernel")

kata_qemu := class("vm", "kata", "kata-qemu", "guest-kernel")

cluster := {"runtimeClasses": [crun, gvisor, kata_fc, kata_qemu]}

# The same cluster with some fields of one class changed.
changed(name, fields) := {"runtimeClasses": [class |
	some original in cluster.runtimeClasses
	class := change(original, name, fields)
]}

change(original, name, fields) := object.union(object.remove(original, object.keys(fields)), fields) if {
	original.name == name
} else := original

# A pod with that spec in an untrusted namespace, and in others.
untrusted(spec) := asked(spec, {"runtimeclass-router.io/trust": "untrusted"}, {})

trusted(spec) := asked(spec, {"runtimeclass-router.io/trust": "trusted"}, {})

asked(spec, namespace_labels, pod_labels) := {
	"request": {"operation": "CREATE", "namespace": "ns", "date": "2026-01-01"},
	"node": {"runtimeClasses": [], "reports": true, "selects": false},
	"namespace": {"name": "ns", "labels": namespace_labels, "annotations": {}},
	"pod": {
		"apiVersion": "v1",
		"kind": "Pod",
		"metadata": {"name": "p", "labels": pod_labels},
		"spec": object.union({"containers": [{"name": "c", "image": "i"}]}, spec),
	},
}

profiled(profile) := asked({}, {"runtimeclass-router.io/trust": "untrusted"}, {"runtimeclass-router.io/workload-profile": profile})
