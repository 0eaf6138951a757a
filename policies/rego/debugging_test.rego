package router.debugging_test

import data.router
import data.router.fixture

action(class, container, namespace_label) := answer if {
	asked := fixture.asked({"runtimeClassName": class, "ephemeralContainers": [container]}, {"runtimeclass-router.io/trust": namespace_label}, {})
	decision := router.decision with input as object.union(asked, {"request": {"subResource": "ephemeralcontainers"}}) with data.catalog as fixture.cluster
	answer := decision.action
}

plain := {"name": "debugger", "image": "i"}

privileged := {"name": "debugger", "image": "i", "securityContext": {"privileged": true}}

ptrace := {"name": "debugger", "image": "i", "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}

test_plain_containers_may if {
	action("gvisor", plain, "untrusted") == "keep"
	action("gvisor", ptrace, "untrusted") == "keep"
}

test_privileged_ones_may_not if {
	action("gvisor", privileged, "untrusted") == "deny"
	action("crun", privileged, "trusted") == "keep"
}

test_a_relabelled_namespace_does_not_block_debugging if {
	action("crun", plain, "untrusted") == "keep"
	action("crun", privileged, "untrusted") == "deny"
	action("unknown", plain, "untrusted") == "keep"
	action("unknown", privileged, "untrusted") == "deny"
}
