package router.custom

denials contains $"image {container.image} is of the first release: use a later one" if {
	input.pod.metadata.labels.app == "api"
	some container in input.pod.spec.containers
	endswith(container.image, ":1")
}

candidates contains ["kata-fc", "gvisor"] if input.pod.metadata.labels.app == "web"
