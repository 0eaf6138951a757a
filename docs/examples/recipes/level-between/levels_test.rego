package levels_test

import data.router.trust

asked(namespace, pod) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": namespace}, "annotations": {}},
	"pod": {
		"metadata": {"name": "p", "labels": {"runtimeclass-router.io/trust": pod}},
		"spec": {"containers": [{"name": "c", "image": "i"}]},
	},
}

test_a_pod_may_lower_itself_to_the_level if {
	trust.level.name == "restricted" with input as asked("trusted", "restricted")
}

test_a_pod_may_not_raise_itself_to_it if {
	trust.level.name == "untrusted" with input as asked("untrusted", "restricted")
}
