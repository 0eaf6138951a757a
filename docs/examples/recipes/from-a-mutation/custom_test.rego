package custom_test

import data.router.custom

asked(role) := {
	"request": {"operation": "CREATE", "namespace": "tenant-7", "date": "2026-01-01"},
	"namespace": {"name": "tenant-7", "labels": {"runtimeclass-router.io/trust": "untrusted", "tenancy": "external"}, "annotations": {}},
	"pod": {"metadata": {"name": "p", "labels": {"role": role}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}

test_builds if custom.candidates == {["class:kata-qemu"]} with input as asked("build")

test_the_rest if count(custom.candidates) == 0 with input as asked("web")
