package decision_test

import data.router

cluster := {"runtimeClasses": [{
	"name": "gvisor", "handler": "runsc", "family": "gvisor", "isolation": "user-space-kernel",
	"nodeSelector": {"example.com/runtime": "gvisor"}, "tolerations": [], "hostDevicesWithheld": false,
	"poolReady": true, "everywhere": true, "userNamespaces": false, "recursiveReadOnlyMounts": false,
}]}

asked(selector) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"node": {"runtimeClasses": [], "reports": false, "selects": false},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {
		"metadata": {"name": "p", "ownerReferences": [{"kind": "DaemonSet", "name": "cache", "controller": true}]},
		"spec": {"nodeSelector": selector, "containers": [{"name": "c", "image": "i"}]},
	},
}

test_without_the_pools_selector if router.decision.action == "deny" with input as asked({}) with data.catalog as cluster

test_with_it if {
	router.decision.runtimeClassName == "gvisor" with input as asked({"example.com/runtime": "gvisor"}) with data.catalog as cluster
}
