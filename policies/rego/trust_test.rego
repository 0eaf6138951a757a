package router.trust_test

import data.router.fixture
import data.router.trust

level(namespace_labels, pod_labels) := answer if answer := trust.level.name with input as fixture.asked({}, namespace_labels, pod_labels)

warned(namespace_labels, pod_labels) := answer if answer := trust.warnings with input as fixture.asked({}, namespace_labels, pod_labels)

ns(value) := {"runtimeclass-router.io/trust": value}

pod(value) := {"runtimeclass-router.io/trust": value}

test_namespace_label_decides if {
	level(ns("trusted"), {}) == "trusted"
	level(ns("untrusted"), {}) == "untrusted"
}

test_unlabelled_namespace_has_the_default if level({}, {}) == "untrusted"

test_default_is_configuration if {
	level({}, {}) == "trusted" with data.config.unlabelledNamespaces.trust as "trusted"
}

test_pod_may_lower_itself if level(ns("trusted"), pod("untrusted")) == "untrusted"

test_pod_may_not_raise_itself if {
	level(ns("untrusted"), pod("trusted")) == "untrusted"
	some warning in warned(ns("untrusted"), pod("trusted"))
	contains(warning, "trust=trusted is ignored")
}

test_same_label_says_nothing if count(warned(ns("trusted"), pod("trusted"))) == 0

test_unknown_labels_are_the_least_trusted if {
	level(ns("Trusted"), {}) == "untrusted"
	level(ns(""), {}) == "untrusted"
	level(ns("trusted"), pod("yes")) == "untrusted"
	count(warned(ns("no"), pod("yes"))) == 2
	some warning in warned(ns("trusted"), pod("yes"))
	contains(warning, "use one of trusted, untrusted")
}

three := [
	{"name": "trusted", "floor": "host-kernel", "candidates": {"general": ["crun"]}},
	{"name": "restricted", "floor": "user-space-kernel", "candidates": {"general": ["gvisor"]}},
	{"name": "untrusted", "floor": "guest-kernel", "candidates": {"general": ["kata-fc"]}},
]

test_a_level_between if {
	level(ns("restricted"), {}) == "restricted" with data.config.levels as three
	level(ns("restricted"), pod("trusted")) == "restricted" with data.config.levels as three
	level(ns("restricted"), pod("untrusted")) == "untrusted" with data.config.levels as three
	level(ns("trusted"), pod("restricted")) == "restricted" with data.config.levels as three
}

test_reasons if {
	reason(ns("untrusted"), {}) == "namespace \"ns\" is labelled trust=untrusted"
	reason({}, {}) == "namespace \"ns\" has no trust label and the default is untrusted"
	startswith(reason(ns("trusted"), pod("untrusted")), "the pod's label trust=untrusted lowers")
}

reason(namespace_labels, pod_labels) := answer if answer := trust.reason with input as fixture.asked({}, namespace_labels, pod_labels)

test_a_hook_may_lower if {
	level(ns("trusted"), {}) == "untrusted" with data.router.custom.lowered as {"untrusted": {"b", "a"}}
	reason(ns("trusted"), {}) == "the policy lowers trust to untrusted: a; b" with data.router.custom.lowered as {"untrusted": {"b", "a"}}
	level(ns("trusted"), {}) == "restricted" with data.config.levels as three with data.router.custom.lowered as {"restricted": {"a"}}
	level(ns("trusted"), pod("untrusted")) == "untrusted" with data.config.levels as three
		with data.router.custom.lowered as {"restricted": {"a"}}
	both := {"restricted": {"a"}, "untrusted": {"b"}}
	reason(ns("trusted"), {}) == "the policy lowers trust to untrusted: b" with data.config.levels as three with data.router.custom.lowered as both
}

test_a_hook_may_not_raise if {
	level(ns("untrusted"), {}) == "untrusted" with data.router.custom.lowered as {"trusted": {"a"}}
	reason(ns("untrusted"), {}) == "namespace \"ns\" is labelled trust=untrusted" with data.router.custom.lowered as {"trusted": {"a"}}
	startswith(reason(ns("trusted"), pod("untrusted")), "the pod's label") with data.router.custom.lowered as {"untrusted": {"a"}}
}

test_a_hook_that_names_no_level_is_the_least_trusted if {
	level(ns("trusted"), {}) == "untrusted" with data.router.custom.lowered as {"unrtusted": {"a"}}
	some warning in warned(ns("trusted"), {}) with data.router.custom.lowered as {"unrtusted": {"a"}}
	contains(warning, "unrtusted, which is not a trust level and counts as untrusted")
}
