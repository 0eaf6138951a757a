package router.custom

# Where the namespace is trusted, these are not.
lowered.untrusted contains $"image {image} is from a public registry" if {
	some image in images
	not startswith(image, "registry.example.com/")
}

lowered.untrusted contains $"service account {account} runs what users upload" if {
	account := input.pod.spec.serviceAccountName
	account in {"plugin-runner", "uploads"}
}

images contains container.image if some container in input.pod.spec.containers

images contains container.image if some container in input.pod.spec.initContainers
