package router.custom

denials contains "the host's network is not for tenants" if input.pod.spec.hostNetwork

denials contains "not in the default namespace" if {
	input.request.namespace == "default"
	input.pod.metadata.labels["example.com/never"]
}
