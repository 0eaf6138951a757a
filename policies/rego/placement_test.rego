package router.placement_test

import data.router.fixture
import data.router.placement

fields(asked, class) := answer if {
	answer := {mark.field | some mark in placement.contradictions(class)} with input as asked with data.catalog as fixture.cluster
}

test_selector if {
	fields(fixture.untrusted({"nodeSelector": {"pool": "gvisor"}}), fixture.gvisor) == set()
	fields(fixture.untrusted({"nodeSelector": {"pool": "other", "disk": "ssd"}}), fixture.gvisor) == {"spec.nodeSelector[pool]"}
}

test_merged_selector if {
	merged := fixture.untrusted({"runtimeClassName": "crun", "nodeSelector": {"pool": "crun"}})
	fields(merged, fixture.gvisor) == set()
}

test_node_name if {
	bound := fixture.untrusted({"nodeName": "n"})
	fields(bound, fixture.gvisor) == {"spec.nodeName"}
	fields(object.union(bound, {"node": {"runtimeClasses": ["gvisor"]}}), fixture.gvisor) == set()
	fields(object.union(bound, {"node": {"runtimeClasses": ["gvisor"]}}), fixture.kata_fc) == {"spec.nodeName"}
}

owned(kind, spec) := json.patch(
	fixture.untrusted(spec),
	[{"op": "add", "path": "/pod/metadata/ownerReferences", "value": [{"kind": kind, "name": "d"}]}],
)

test_daemon_set if {
	fields(owned("DaemonSet", {}), fixture.gvisor) == {"metadata.ownerReferences"}
	fields(owned("DaemonSet", {"nodeSelector": {"pool": "gvisor"}}), fixture.gvisor) == set()
	fields(owned("ReplicaSet", {}), fixture.gvisor) == set()
}

test_daemon_set_is_told_what_to_add if {
	hints := {mark.hint | some mark in placement.contradictions(fixture.gvisor)} with input as owned("DaemonSet", {})
	hints == {"add nodeSelector pool: gvisor to the DaemonSet's template"}
	bare := object.union(object.remove(fixture.gvisor, ["nodeSelector", "everywhere"]), {"nodeSelector": {}, "everywhere": false})
	others := {mark.hint | some mark in placement.contradictions(bare)} with input as owned("DaemonSet", {})
	others == {"give the class a nodeSelector, and the DaemonSet's template too"}
}

test_daemon_set_where_every_node_offers_the_class if {
	bare := object.union(object.remove(fixture.gvisor, ["nodeSelector"]), {"nodeSelector": {}})
	fields(owned("DaemonSet", {}), bare) == set()
}

required(terms) := fixture.untrusted({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})

term(key, operator, values) := {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}

# Each row: an operator and its values, against a class that selects generation=5.
satisfied := {
	"in": ["In", ["4", "5"]],
	"not in": ["NotIn", ["4"]],
	"exists": ["Exists", []],
	"greater": ["Gt", ["4"]],
	"less": ["Lt", ["6"]],
}

contradicted := {
	"in": ["In", ["4"]],
	"not in": ["NotIn", ["5"]],
	"does not exist": ["DoesNotExist", []],
	"greater": ["Gt", ["5"]],
	"less": ["Lt", ["5"]],
	"no number": ["Gt", ["x"]],
}

numbered := object.union(object.remove(fixture.gvisor, ["nodeSelector"]), {"nodeSelector": {"generation": "5"}})

test_affinity_that_the_pool_satisfies if {
	every row in satisfied {
		fields(required([term("generation", row[0], row[1])]), numbered) == set()
	}
	fields(required([term("elsewhere", "In", ["x"])]), numbered) == set()
}

test_affinity_that_contradicts if {
	every row in contradicted {
		fields(required([term("generation", row[0], row[1])]), numbered) == {"spec.affinity.nodeAffinity"}
	}
}

test_one_term_is_enough if {
	fields(required([term("generation", "In", ["4"]), term("generation", "In", ["5"])]), numbered) == set()
	fields(required([term("generation", "In", ["4"]), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]), numbered) == set()
}

test_both_sides_are_named if {
	reasons := {mark.reason | some mark in placement.contradictions(numbered)} with input as required([term("generation", "In", ["4"])])
	reasons == {"every required term contradicts generation=5 of the class"}
}

test_the_fallbacks_choice_was_not_asked_for if {
	given := json.patch(
		fixture.untrusted({"runtimeClassName": "gvisor", "nodeSelector": {"pool": "gvisor"}}),
		[{"op": "add", "path": "/pod/metadata/annotations", "value": {"runtimeclass-router.io/fallback": "gvisor"}}],
	)
	not placement.asked with input as given with data.catalog as fixture.cluster
	fields(given, fixture.kata_fc) == set()
	changed := json.patch(given, [{"op": "replace", "path": "/pod/spec/runtimeClassName", "value": "vm"}])
	asked := placement.asked with input as changed with data.catalog as fixture.cluster
	asked == "vm"
}

test_the_benefit_of_the_doubt if {
	bare := object.union(object.remove(fixture.crun, ["nodeSelector"]), {"nodeSelector": {}})
	silent := {"node": {"runtimeClasses": [], "reports": false, "selects": false}}
	fields(object.union(fixture.trusted({"nodeName": "n"}), silent), bare) == set()
	fields(object.union(fixture.untrusted({"nodeName": "n"}), silent), bare) == {"spec.nodeName"}
	fields(object.union(fixture.trusted({"nodeName": "n"}), silent), fixture.crun) == {"spec.nodeName"}
	fields(fixture.trusted({"nodeName": "n"}), bare) == {"spec.nodeName"}
}

selecting(fits) := object.union(fixture.untrusted({"nodeSelector": {"disk": "ssd"}}), {"node": {"selects": true, "fits": fits}})

test_what_no_node_meets_today if {
	placement.unmet(fixture.gvisor) with input as selecting(["kata-fc"])
	not placement.unmet(fixture.gvisor) with input as selecting(["gvisor"])
	not placement.unmet(fixture.gvisor) with input as fixture.untrusted({})
	placement.unmet(fixture.gvisor) with input as object.union(selecting([]), {"node": {"selects": true}})
}
