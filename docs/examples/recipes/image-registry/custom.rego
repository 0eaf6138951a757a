package router.custom

# What partners ship gets a guest kernel.
candidates contains ["kata-clh", "kata-qemu"] if {
	some image in images
	startswith(image, "partners.registry.example.com/")
}

images contains container.image if some container in input.pod.spec.containers

images contains container.image if some container in input.pod.spec.initContainers
