package router.exceptions_test

import data.router
import data.router.exceptions
import data.router.fixture

agent := {
	"name": "agent", "namespaces": ["ns"], "serviceAccounts": ["agent"], "podLabels": {"app": "a"},
	"runtimeClassName": "crun", "owner": "o", "ticket": "t", "reason": "r", "until": "2026-01-31",
}

other := {
	"name": "other", "namespaces": ["ns", "elsewhere"], "serviceAccounts": [], "podLabels": {},
	"runtimeClassName": "nvidia", "owner": "o", "ticket": "t", "reason": "r", "until": "2026-06-30",
}

# The day of the fixture is 2026-01-01.
asked(spec, labels) := fixture.asked(spec, {"runtimeclass-router.io/trust": "untrusted"}, labels)

decision(question, list) := answer if {
	answer := router.decision with input as question with data.catalog as cluster with data.config.exceptions as list
}

cluster := {"runtimeClasses": array.concat(fixture.cluster.runtimeClasses, [object.union(
	object.remove(fixture.class("nvidia", "nvidia", "nvidia", "unknown"), ["nodeSelector"]),
	{"nodeSelector": {"gpu": "yes"}},
)])}

names(question, list) := answer if {
	answer := {exception.name | some exception in exceptions.active} with input as question with data.config.exceptions as list
}

test_all_must_match if {
	names(asked({"serviceAccountName": "agent"}, {"app": "a"}), [agent]) == {"agent"}
	names(asked({"serviceAccountName": "default"}, {"app": "a"}), [agent]) == set()
	names(asked({"serviceAccountName": "agent"}, {"app": "b"}), [agent]) == set()
	names(asked({"serviceAccountName": "agent"}, {}), [agent]) == set()
	names(asked({"serviceAccountName": "agent"}, {"app": "a"}), [object.union(agent, {"namespaces": ["n"]})]) == set()
	names(asked({}, {}), [other]) == {"other"}
}

test_last_day_is_included if {
	names(asked({}, {}), [object.union(other, {"until": "2026-01-01"})]) == {"other"}
	names(asked({}, {}), [object.union(other, {"until": "2025-12-31"})]) == set()
}

test_expired_and_expiring_ones_say_so if {
	expired := exceptions.warnings with input as asked({}, {}) with data.config.exceptions as [object.union(other, {"until": "2025-12-31"})]
	some warning in expired
	contains(warning, "exception other expired on 2025-12-31")
	soon := exceptions.warnings with input as asked({}, {}) with data.config.exceptions as [object.union(other, {"until": "2026-01-15"})]
	some message in soon
	contains(message, "exception other expires on 2026-01-15")
	later := exceptions.warnings with input as asked({}, {}) with data.config.exceptions as [object.union(other, {"until": "2026-01-16"})]
	later == set()
}

test_a_pod_that_asks_for_the_class_keeps_it if {
	answer := decision(asked({"runtimeClassName": "nvidia", "hostNetwork": true}, {}), [other])
	answer.action == "keep"
	answer.runtimeClassName == "nvidia"
	answer.reasons[1] == "exception other until 2026-06-30: r"
}

test_a_pod_that_asks_for_none_gets_it if {
	answer := decision(asked({"hostNetwork": true}, {}), [other])
	answer.action == "route"
	answer.runtimeClassName == "nvidia"
}

test_a_pod_that_asks_for_another_is_judged_as_ever if {
	decision(asked({"runtimeClassName": "crun"}, {}), [other]).runtimeClassName == "gvisor"
}

test_of_two_for_one_class_the_first_speaks if {
	second := object.union(other, {"name": "zz", "reason": "s"})
	decision(asked({}, {}), [second, other]).reasons[1] == "exception other until 2026-06-30: r"
}

test_trusted_pods_need_none if {
	question := fixture.asked({}, {"runtimeclass-router.io/trust": "trusted"}, {})
	decision(question, [other]).runtimeClassName == "crun"
}

test_a_class_that_does_not_exist_excepts_nobody if {
	answer := decision(asked({}, {}), [object.union(other, {"runtimeClassName": "gone"})])
	answer.runtimeClassName == "gvisor"
	some warning in answer.warnings
	contains(warning, "exception other does not apply")
}

test_placement_counts_under_an_exception_too if {
	answer := decision(asked({"nodeSelector": {"gpu": "no"}}, {}), [other])
	answer.runtimeClassName == "gvisor"
	some warning in answer.warnings
	contains(warning, "exception other does not apply")
}
