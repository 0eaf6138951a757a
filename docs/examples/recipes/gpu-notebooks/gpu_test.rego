package gpu_test

import data.router

asked(resources) := {
	"request": {"operation": "CREATE", "namespace": "research", "date": "2026-01-01"},
	"namespace": {"name": "research", "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": resources}}]}},
}

test_without_a_gpu_runtime_it_is_refused if {
	router.decision.action == "deny" with input as asked({"nvidia.com/gpu": "1"}) with data.config.gpuRuntimes as []
}
