package custom_test

import data.router.custom

asked(spec) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": "untrusted"}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": spec},
}

partners := [{"name": "c", "image": "partners.registry.example.com/report:3"}]

own := [{"name": "c", "image": "registry.example.com/report:3"}]

test_partners_images if {
	custom.candidates == {["kata-clh", "kata-qemu"]} with input as asked({"containers": partners})
}

test_an_init_container_counts if {
	count(custom.candidates) == 1 with input as asked({"containers": own, "initContainers": partners})
}

test_other_images_are_routed_as_ever if {
	count(custom.candidates) == 0 with input as asked({"containers": own})
}
