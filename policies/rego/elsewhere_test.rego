package router.elsewhere_test

import data.router
import data.router.fixture

listed := [
	{"name": "aci", "nodeSelector": {"type": "virtual-kubelet", "isolating": "true"}},
	{"name": "fargate", "schedulerName": "fargate-scheduler"},
]

action(spec) := answer if {
	decision := router.decision with input as fixture.untrusted(spec) with data.catalog as fixture.cluster
		with data.config.isolatingVirtualNodes as listed
	answer := decision.action
}

test_bound_pods_may if {
	action({"nodeSelector": {"type": "virtual-kubelet", "isolating": "true"}}) == "exempt"
	action({"schedulerName": "fargate-scheduler"}) == "exempt"
}

test_others_may_not if {
	action({"nodeSelector": {"type": "virtual-kubelet"}}) == "deny"
	action({"tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}]}) == "deny"
	action({"schedulerName": "fargate-scheduler", "nodeName": "n"}) == "deny"
	action({"schedulerName": "fargate-scheduler", "runtimeClassName": "gvisor"}) == "deny"
	action({}) == "route"
}
