package router.custom

# No sandboxed pod is given it, and one that asks for it gets another.
findings contains {
	"field": "spec.runtimeClassName",
	"verdict": "deny",
	"runtimes": ["kata-fc"],
	"reason": "kata-fc has a fault that is being mended (ticket 12)",
	"hint": "leave runtimeClassName out",
}

# A trusted pod would be let have what it asks for.
denials contains $"runtime class {class.name} is not to be used for now (ticket 12): leave runtimeClassName out" if {
	some class in withdrawn
	class.name == input.pod.spec.runtimeClassName
}

# METADATA
# schemas:
#   - data.catalog: schema.catalog
withdrawn contains class if {
	some class in data.catalog.runtimeClasses
	class.family == "kata-fc"
	input.namespace.labels["runtimeclass-router.io/trust"] == "trusted"
}
