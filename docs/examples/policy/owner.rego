package router.custom

# Somebody must answer for what runs in a sandbox.
denials contains "label example.com/owner is missing: name the team that answers for this pod" if {
	input.namespace.labels["runtimeclass-router.io/trust"] == "untrusted"
	not input.pod.metadata.labels["example.com/owner"]
}
