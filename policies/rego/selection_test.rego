package router.selection_test

import data.router.fixture
import data.router.selection

choice(asked) := answer if answer := object.filter(selection.choice, ["action", "class"]) with input as asked with data.catalog as fixture.cluster

route(class) := {"action": "route", "class": class}

keep(class) := {"action": "keep", "class": class}

test_profiles if {
	choice(fixture.untrusted({})) == route("gvisor")
	choice(fixture.profiled("general")) == route("gvisor")
	choice(fixture.profiled("syscall-heavy")) == route("kata-fc")
	choice(fixture.profiled("kernel-features")) == route("vm")
}

test_profile_of_the_namespace_and_of_the_pod if {
	labels := {"runtimeclass-router.io/trust": "untrusted", "runtimeclass-router.io/workload-profile": "kernel-features"}
	choice(fixture.asked({}, labels, {})) == route("vm")
	choice(fixture.asked({}, labels, {"runtimeclass-router.io/workload-profile": "general"})) == route("gvisor")
}

test_unknown_profile_is_general if {
	choice(fixture.profiled("fast")) == route("gvisor")
	some warning in selection.warnings with input as fixture.profiled("fast") with data.catalog as fixture.cluster
	contains(warning, "use one of general, kernel-features, syscall-heavy")
}

test_pool_that_is_not_ready_comes_last if {
	picked := selection.choice.class with input as fixture.untrusted({}) with data.catalog as fixture.changed("gvisor", {"poolReady": false})
	picked == "kata-fc"
}

test_no_pool_is_ready if {
	cold := {"runtimeClasses": [object.union(class, {"poolReady": false}) | some class in fixture.cluster.runtimeClasses]}
	picked := selection.choice.class with input as fixture.untrusted({}) with data.catalog as cold
	picked == "gvisor"
	some warning in selection.warnings with input as fixture.untrusted({}) with data.catalog as cold
	contains(warning, "no node of runtime class gvisor is ready")
}

test_no_kvm_nodes_leave_gvisor if {
	alone := {"runtimeClasses": [fixture.crun, fixture.gvisor]}
	picked := selection.choice.class with input as fixture.profiled("kernel-features") with data.catalog as alone
	picked == "gvisor"
	some warning in selection.warnings with input as fixture.profiled("kernel-features") with data.catalog as alone
	contains(warning, "will not work")
}

test_classes_of_one_runtime_by_name if {
	two := {"runtimeClasses": [fixture.class("a-sandbox", "runsc", "gvisor", "user-space-kernel"), fixture.gvisor]}
	picked := selection.choice.class with input as fixture.untrusted({}) with data.catalog as two
	picked == "a-sandbox"
}

test_one_class_by_name if {
	levels := [{"name": "untrusted", "floor": "user-space-kernel", "candidates": {"general": ["class:vm", "gvisor"]}}]
	picked := selection.choice.class with input as fixture.untrusted({}) with data.catalog as fixture.cluster with data.config.levels as levels
	picked == "vm"
}

test_a_class_that_meets_the_floor_is_kept if {
	choice(fixture.untrusted({"runtimeClassName": "vm"})) == keep("vm")
	choice(fixture.untrusted({"runtimeClassName": "gvisor"})) == keep("gvisor")
}

test_a_class_below_the_floor_is_replaced if {
	asked := fixture.untrusted({"runtimeClassName": "crun", "nodeSelector": {"pool": "crun"}})
	choice(asked) == route("gvisor")
	some warning in selection.warnings with input as asked with data.catalog as fixture.cluster
	contains(warning, "runtime class crun is replaced by gvisor")
}

test_a_class_in_disguise_is_replaced if {
	disguised := fixture.changed("gvisor", {"handler": "runc", "family": "runc", "isolation": "host-kernel"})
	picked := selection.choice.class with input as fixture.untrusted({"runtimeClassName": "gvisor"}) with data.catalog as disguised
	picked == "kata-fc"
}

test_a_class_that_is_not_in_the_catalog_is_replaced if {
	asked := fixture.untrusted({"runtimeClassName": "gone"})
	choice(asked) == route("gvisor")
	some warning in selection.warnings with input as asked with data.catalog as fixture.cluster
	contains(warning, "not in the catalog")
}

test_a_class_that_cannot_run_the_pod_is_replaced if {
	block := {"runtimeClassName": "gvisor", "containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/d"}]}]}
	choice(fixture.untrusted(block)) == route("kata-fc")
}

test_an_empty_class_asks_for_nothing if choice(fixture.untrusted({"runtimeClassName": ""})) == route("gvisor")

test_unknown_isolation_is_below_the_floor if {
	strange := fixture.changed("gvisor", {"isolation": "unknown"})
	picked := selection.choice.class with input as fixture.untrusted({"runtimeClassName": "gvisor"}) with data.catalog as strange
	picked == "kata-fc"
}

test_the_pods_selector_rules_out if {
	asked := fixture.untrusted({"nodeSelector": {"pool": "kata-fc"}})
	choice(asked) == route("kata-fc")
}

test_a_merged_selector_is_not_the_pods_own if {
	asked := fixture.asked(
		{"runtimeClassName": "crun", "nodeSelector": {"pool": "crun"}},
		{"runtimeclass-router.io/trust": "untrusted"}, {"runtimeclass-router.io/workload-profile": "syscall-heavy"},
	)
	choice(asked) == route("kata-fc")
}

test_nothing_can_run_it if {
	asked := fixture.untrusted({"nodeSelector": {"pool": "elsewhere"}})
	not choice(asked)
	refusals := selection.refusals with input as asked with data.catalog as fixture.cluster
	some refusal in refusals
	contains(refusal, "gvisor: spec.nodeSelector[pool]: \"elsewhere\" contradicts \"gvisor\"")
	some other in refusals
	other == "kata-clh: no such runtime in this cluster"
}

test_a_prefer_mark_puts_behind if {
	mark := {"field": "spec.x", "verdict": "prefer", "runtimes": ["gvisor"], "reason": "slow", "hint": "none"}
	asked := fixture.untrusted({})
	picked := selection.choice.class with input as asked with data.catalog as fixture.cluster with data.router.custom.findings as {mark}
	picked == "kata-fc"
	alone := {"runtimeClasses": [fixture.gvisor]}
	warnings := selection.warnings with input as asked with data.catalog as alone with data.router.custom.findings as {mark}
	some warning in warnings
	contains(warning, "spec.x under runtime class gvisor: slow")
}

test_trusted_pods if {
	choice(fixture.trusted({})) == route("crun")
	choice(fixture.trusted({"hostNetwork": true})) == route("crun")
	choice(fixture.trusted({"runtimeClassName": "nvidia"})) == keep("nvidia")
	choice(fixture.trusted({"runtimeClassName": "gvisor"})) == keep("gvisor")
}

test_trusted_pods_are_never_denied_for_placement if {
	choice(fixture.trusted({"nodeSelector": {"pool": "gpu"}})) == keep("")
	choice(fixture.trusted({"nodeName": "node-1"})) == keep("")
	choice(object.union(fixture.trusted({"nodeName": "node-1"}), {"node": {"runtimeClasses": ["crun"]}})) == route("crun")
	owned := json.patch(fixture.trusted({}), [{"op": "add", "path": "/pod/metadata/ownerReferences", "value": [{"kind": "DaemonSet", "name": "d"}]}])
	choice(owned) == keep("")
}

test_trusted_pods_where_some_nodes_lack_the_class if {
	somewhere := fixture.changed("crun", {"everywhere": false, "nodeSelector": {}})
	chosen := selection.choice with input as fixture.trusted({}) with data.catalog as somewhere
	object.filter(chosen, ["action", "class"]) == keep("")
}

test_what_was_passed_over_is_said if {
	block := {"containers": [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/d"}]}]}
	reason := selection.choice.reason with input as fixture.untrusted(block) with data.catalog as fixture.cluster
	contains(reason, "(gvisor: spec.containers[0].volumeDevices)")
	cold := selection.choice.reason with input as fixture.untrusted({}) with data.catalog as fixture.changed("gvisor", {"poolReady": false})
	contains(cold, "(gvisor: no node is ready)")
	mark := {"field": "spec.x", "verdict": "prefer", "runtimes": ["gvisor"], "reason": "slow", "hint": "none"}
	slow := selection.choice.reason with input as fixture.untrusted({}) with data.catalog as fixture.cluster with data.router.custom.findings as {mark}
	contains(slow, "(gvisor: spec.x)")
}

test_custom_candidates if {
	picked := selection.choice.class with input as fixture.untrusted({}) with data.catalog as fixture.cluster
		with data.router.custom.candidates as {["kata-qemu"]}
	picked == "vm"
}

test_custom_profiles if {
	profile(fixture.untrusted({}), {"syscall-heavy"}) == "syscall-heavy"
	profile(fixture.profiled("kernel-features"), {"syscall-heavy"}) == "kernel-features"
	profile(fixture.profiled("misspelt"), {"syscall-heavy"}) == "general"
	profile(fixture.untrusted({}), {"misspelt"}) == "general"
	warnings := selection.warnings with input as fixture.untrusted({}) with data.router.custom.profiles as {"misspelt"}
	some warning in warnings
	startswith(warning, "profile misspelt of the policy is not a profile")
}

profile(asked, hooked) := answer if answer := selection.profile with input as asked with data.router.custom.profiles as hooked

# The reason must be the same before and after the pod has its class, or a second call
# of the webhook would patch again.
test_the_reason_is_stable if {
	before := selection.choice.reason with input as fixture.untrusted({}) with data.catalog as fixture.cluster
	after := selection.choice.reason with input as fixture.untrusted({"runtimeClassName": "gvisor"}) with data.catalog as fixture.cluster
	before == after
	first := selection.choice.reason with input as fixture.trusted({}) with data.catalog as fixture.cluster
	second := selection.choice.reason with input as fixture.trusted({"runtimeClassName": "crun", "nodeSelector": {"pool": "crun"}})
		with data.catalog as fixture.cluster
	first == second
}

test_a_profile_that_a_level_does_not_list if {
	labels := {"runtimeclass-router.io/trust": "trusted"}
	choice(fixture.asked({}, labels, {"runtimeclass-router.io/workload-profile": "syscall-heavy"})) == route("crun")
}

test_a_selector_that_no_node_meets_orders_last_and_warns if {
	asked := object.union(fixture.untrusted({"nodeSelector": {"disk": "ssd"}}), {"node": {"selects": true, "fits": ["kata-fc"]}})
	choice(asked) == route("kata-fc")
	reason := selection.choice.reason with input as asked with data.catalog as fixture.cluster
	contains(reason, "(gvisor: no node carries the pod's selector)")
	nowhere := object.union(asked, {"node": {"selects": true, "fits": []}})
	choice(nowhere) == route("gvisor")
	warnings := selection.warnings with input as nowhere with data.catalog as fixture.cluster
	some warning in warnings
	contains(warning, "no ready node of runtime class gvisor carries the pod's node selector (disk=ssd)")
}
