# METADATA
# title: Trust
# description: |
#   How far the code in a pod is trusted, by the labels of its namespace and its
#   own. The namespace's label is the ceiling: a pod may lower itself and never
#   raise itself. An unknown label value is the least trusted level. Hooks may lower a
#   pod further.
# schemas:
#   - data.config: schema.config
package router.trust

import data.router.custom

# Labels are written out: a constant would hide from the engine which label is read.
namespace_label := input.namespace.labels["runtimeclass-router.io/trust"]

pod_label := input.pod.metadata.labels["runtimeclass-router.io/trust"]

names := [level.name | some level in data.config.levels]

# The position of a level on the scale: 0 is the most trusted.
position(name) := object.get(positions, name, count(names) - 1)

positions := {name: i | some i, name in names}

ceiling := position(namespace_label) if {
	namespace_label
} else := position(data.config.unlabelledNamespaces.trust)

default lowered := 0

lowered := position(pod_label)

default hooked := 0

hooked := max([position(name) | some name, _ in custom.lowered])

# METADATA
# title: The pod's trust level, one of data.config.levels
# scope: rule
level := data.config.levels[max([ceiling, lowered, hooked])]

# METADATA
# title: Where the trust level comes from
# scope: rule
reason := $"the policy lowers trust to {level.name}: {concat("; ", sort(lowering))}" if {
	hooked > max([ceiling, lowered])
	lowering := {why | some name, all in custom.lowered; position(name) == hooked; some why in all}
} else := $"{lowering} lowers the trust that namespace \"{input.namespace.name}\" allows" if {
	lowered > ceiling
	lowering := $"the pod's label trust={pod_label}"
} else := $"namespace \"{input.namespace.name}\" is labelled trust={namespace_label}" if {
	namespace_label
} else := $"namespace \"{input.namespace.name}\" has no trust label and the default is {level.name}"

warnings contains $"label runtimeclass-router.io/trust={pod_label} is ignored: the pod's namespace allows {names[ceiling]} at most" if {
	pod_label in names
	lowered < ceiling
}

warnings contains unknown("the pod", pod_label) if not pod_label in names

warnings contains unknown("the namespace", namespace_label) if not namespace_label in names

warnings contains $"the policy lowers trust to {name}, which is not a trust level and counts as {names[count(names) - 1]}" if {
	some name, _ in custom.lowered
	not name in names
}

unknown(owner, value) := sprintf(
	"label runtimeclass-router.io/trust=%s of %s is not a trust level and counts as %s: use one of %s",
	[value, owner, names[count(names) - 1], concat(", ", names)],
)
