package custom_test

import data.router.custom

# A pod with some labels and one image, in a namespace that is trusted so far.
asked(trust, labels, image) := {
	"request": {"operation": "CREATE", "namespace": "shop", "date": "2026-01-01"},
	"namespace": {"name": "shop", "labels": {"runtimeclass-router.io/trust": trust}, "annotations": {}},
	"pod": {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
}

internet_facing := {"example.com/internet-facing": "yes"}

test_a_digest_is_required if {
	some message in custom.denials with input as asked("untrusted", internet_facing, "registry.example.com/web:1")
	contains(message, "has no digest")
}

test_a_digest_is_enough if {
	count(custom.denials) == 0 with input as asked("untrusted", internet_facing, "registry.example.com/web@sha256:0123")
}

test_trusted_batch_pods_are_exempt if {
	count(custom.exemptions) == 1 with input as asked("trusted", {"example.com/batch": "yes"}, "i")
}

test_untrusted_batch_pods_are_not if {
	count(custom.exemptions) == 0 with input as asked("untrusted", {"example.com/batch": "yes"}, "i")
}

test_databases_prefer_a_guest_kernel if {
	some mark in custom.findings with input as asked("untrusted", {}, "registry.example.com/database:7")
	mark.verdict == "prefer"
}

test_internet_facing_pods_get_a_guest_kernel if {
	custom.candidates == {["kata-qemu", "kata-clh"]} with input as asked("untrusted", internet_facing, "i")
}

test_a_team_has_a_profile if {
	custom.profiles == {"syscall-heavy"} with input.namespace.labels as {"example.com/team": "build"}
}

test_public_images_are_not_trusted if {
	count(custom.lowered.untrusted) == 1 with input as asked("trusted", {}, "docker.io/library/nginx:1")
}
