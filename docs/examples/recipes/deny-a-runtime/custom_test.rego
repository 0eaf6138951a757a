package custom_test

import data.router.custom

asked(trust) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": trust}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": {"runtimeClassName": "firecracker", "containers": [{"name": "c", "image": "i"}]}},
}

cluster := {"runtimeClasses": [{"name": "firecracker", "family": "kata-fc"}]}

test_a_trusted_pod_is_told if {
	count(custom.denials) == 1 with input as asked("trusted") with data.catalog as cluster
}

test_an_untrusted_pod_is_routed_elsewhere if {
	count(custom.denials) == 0 with input as asked("untrusted") with data.catalog as cluster
}
