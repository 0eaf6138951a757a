package router.custom

denials contains "no" if {
	input.pod.spec.hostNetwork
