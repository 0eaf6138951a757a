package custom_test

import data.router.custom
import data.router.trust

asked(trust_label, spec) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": trust_label}, "annotations": {}},
	"pod": {"metadata": {"name": "p"}, "spec": spec},
}

own := [{"name": "c", "image": "registry.example.com/web:1"}]

public := [{"name": "c", "image": "docker.io/library/nginx:1"}]

test_a_public_image if trust.level.name == "untrusted" with input as asked("trusted", {"containers": public})

test_a_public_init_container if {
	trust.level.name == "untrusted" with input as asked("trusted", {"containers": own, "initContainers": public})
}

test_a_service_account if {
	trust.level.name == "untrusted" with input as asked("trusted", {"containers": own, "serviceAccountName": "uploads"})
}

test_others_stay_trusted if {
	count(custom.lowered) == 0 with input as asked("trusted", {"containers": own, "serviceAccountName": "default"})
}
