package custom_test

import data.router.custom

asked(namespace) := {
	"request": {"operation": "CREATE", "namespace": namespace, "date": "2026-01-01"},
	"namespace": {"name": namespace, "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}

test_the_namespace if {
	count(custom.candidates) == 1 with input as asked("payments")
	count(custom.findings) == 1 with input as asked("payments")
}

test_others if {
	count(custom.candidates) == 0 with input as asked("shop")
	count(custom.findings) == 0 with input as asked("shop")
}
