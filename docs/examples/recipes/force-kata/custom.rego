package router.custom

# Pods of this namespace get a guest kernel, also those that ask for less.
candidates contains ["kata-clh", "kata-qemu"] if guest_kernel_only

findings contains {
	"field": "metadata.namespace",
	"verdict": "deny",
	"runtimes": ["gvisor"],
	"reason": "namespace payments is for guest kernels only",
	"hint": "leave runtimeClassName out",
} if {
	guest_kernel_only
}

guest_kernel_only if input.namespace.name == "payments"
