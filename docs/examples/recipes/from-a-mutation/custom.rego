package router.custom

# The Gatekeeper mutation: builds of tenants.
candidates contains ["class:kata-qemu"] if {
	input.namespace.labels.tenancy == "external"
	input.pod.metadata.labels.role == "build"
}
