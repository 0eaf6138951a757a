# Each set below is a hook of the shipped policy: what you add to it is read for every
# pod. Replace the examples, and delete the hooks that you do not need.
#
# `input.pod` and `input.namespace` are spelt as in Kubernetes; a misspelt field does not
# compile.
package router.custom

# Refuse a pod. The message is all that its developer sees: say what to change.
denials contains $"image {container.image} has no digest: name it as {container.image}@sha256:..." if {
	input.pod.metadata.labels["example.com/internet-facing"] == "yes"
	some container in input.pod.spec.containers
	not contains(container.image, "@sha256:")
}

# Leave a pod untouched. It cannot go below the floor of the pod's trust level: for an
# untrusted pod without a sandbox, list it in the configuration's exceptions.
exemptions contains "batch pods of the platform choose their runtime" if {
	input.namespace.labels["runtimeclass-router.io/trust"] == "trusted"
	input.pod.metadata.labels["example.com/batch"] == "yes"
}

# Say what a runtime is bad at. deny rules it out, prefer puts it behind others, warn
# lets it through with a warning. All five keys are needed.
findings contains {
	"field": $"spec.containers[{i}].image",
	"verdict": "prefer",
	"runtimes": ["gvisor"],
	"reason": "the database opens files by the thousand",
	"hint": "nothing to do where another sandbox is ready",
} if {
	some i, container in input.pod.spec.containers
	startswith(container.image, "registry.example.com/database")
}

# Replace the list of runtimes of the pod's trust level. Two different lists for one pod
# are an error.
candidates contains ["kata-qemu", "kata-clh"] if {
	input.pod.metadata.labels["example.com/internet-facing"] == "yes"
}

# The workload profile of a pod that is not labelled with one, nor its namespace.
profiles contains "syscall-heavy" if input.namespace.labels["example.com/team"] == "build"

# Lower the trust of a pod to a level, and say why. No policy raises it.
lowered.untrusted contains $"image {container.image} is from a public registry" if {
	some container in input.pod.spec.containers
	startswith(container.image, "docker.io/")
}
