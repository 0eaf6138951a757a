package router.decision_test

import data.router
import data.router.fixture

decision(asked) := answer if answer := router.decision with input as asked with data.catalog as fixture.cluster

test_route if decision(fixture.untrusted({})) == {
	"action": "route",
	"trust": "untrusted",
	"runtimeClassName": "gvisor",
	"reasons": [
		"namespace \"ns\" is labelled trust=untrusted",
		"profile general: gvisor is the first usable of gvisor, kata-fc, kata-clh, kata-qemu",
	],
	"warnings": [],
}

test_keep if decision(fixture.trusted({"runtimeClassName": "nvidia"})).action == "keep"

test_deny if {
	answer := decision(fixture.untrusted({"hostNetwork": true, "hostPID": true}))
	answer.action == "deny"
	answer.trust == "untrusted"
	answer.reasons[0] == "no sandbox here can run this pod (spec.hostNetwork, spec.hostPID), and it needs one: namespace \"ns\" is labelled trust=untrusted"
	contains(answer.reasons[1], "remove hostPID")
	contains(answer.reasons[1], "use the pod network")
	not "runtimeClassName" in object.keys(answer)
}

test_no_classes_at_all if {
	answer := router.decision with input as fixture.untrusted({}) with data.catalog as {"runtimeClasses": []}
	answer.action == "deny"
	answer.reasons[1] == "gvisor, kata-fc, kata-clh, kata-qemu: no such runtime in this cluster"
}

test_custom_denial if {
	answer := router.decision with input as fixture.trusted({}) with data.catalog as fixture.cluster
		with data.router.custom.denials as {"not on Fridays"}
	answer.action == "deny"
	answer.reasons == ["not on Fridays"]
}

test_custom_exemption if {
	answer := router.decision with input as fixture.trusted({}) with data.catalog as fixture.cluster
		with data.router.custom.exemptions as {"it is ours"}
	answer.action == "exempt"
	answer.reasons == ["it is ours"]
}

test_trusted_pods_that_go_elsewhere_are_untouched if {
	decision(fixture.trusted({"os": {"name": "windows"}})).action == "exempt"
	decision(fixture.trusted({"nodeSelector": {"type": "virtual-kubelet"}})).action == "exempt"
	decision(fixture.untrusted({"os": {"name": "windows"}})).action == "deny"
}

test_three_faults_are_named_once if {
	answer := decision(fixture.untrusted({"hostNetwork": true, "hostPID": true, "volumes": [{"name": "a", "image": {"reference": "r"}}]}))
	startswith(answer.reasons[1], "gvisor, kata-fc, vm: spec.hostNetwork: ")
	contains(answer.reasons[1], "spec.hostPID: ")
	startswith(answer.reasons[2], "gvisor: spec.volumes[0].image: ")
	count(concat("; ", answer.reasons)) < 1000
}

test_faulty_findings_fail_closed if {
	misspelt := {"field": "f", "verdict": "Deny", "runtimes": ["gvisor"], "reason": "r", "hint": "h"}
	answer := router.decision with input as fixture.untrusted({}) with data.catalog as fixture.cluster
		with data.router.custom.findings as {misspelt}
	answer.action == "deny"
	contains(answer.reasons[0], "verdict \"Deny\"")
	short := router.decision with input as fixture.untrusted({}) with data.catalog as fixture.cluster
		with data.router.custom.findings as {object.remove(misspelt, ["hint"])}
	some reason in short.reasons
	contains(reason, "lacks hint")
	trusted := router.decision with input as fixture.trusted({}) with data.catalog as fixture.cluster
		with data.router.custom.findings as {misspelt}
	trusted.action == "route"
}
