# METADATA
# title: Placement
# description: |
#   Where the pod says that it must run, against where a class runs. Nothing in
#   Kubernetes compares the two before the kubelet fails or the scheduler gives up.
# schemas:
#   - data.catalog: schema.catalog
package router.placement

import data.router.index
import data.router.trust

# The class that the pod has, and the same from the catalog.
present := input.pod.spec.runtimeClassName if input.pod.spec.runtimeClassName != ""

present_class := index.classes[present]

# METADATA
# title: The class that the pod asks for
# description: One that the in-process fallback put in was not asked for.
# scope: rule
asked := present if not fallback

fallback if input.pod.metadata.annotations["runtimeclass-router.io/fallback"] == present

# METADATA
# title: The same from the catalog; undefined where it has none of that name
# scope: rule
asked_class := present_class if asked

# What of the node selector is the pod's own: the API server merges the selector of
# the class that a pod has into the pod before any webhook sees it.
own_selector[key] := value if {
	some key, value in input.pod.spec.nodeSelector
	not present_class.nodeSelector[key] == value
}

# METADATA
# title: What of the pod contradicts where the class runs
# scope: rule
contradictions(class) := ((selectors(class) | node_name(class)) | daemon_set(class)) | affinity(class) if {
	bound
} else := selectors(class)

# METADATA
# title: Whether the pod says anything about where it runs; most do not
# scope: rule
placed if count(own_selector) > 0

placed if bound

# By more than its selector.
bound if input.pod.spec.nodeName

bound if input.pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution

bound if {
	some owner in input.pod.metadata.ownerReferences
	owner.kind == "DaemonSet"
}

selectors(class) := {mark |
	some key, wanted in class.nodeSelector
	own := own_selector[key]
	own != wanted
	mark := {
		"field": $"spec.nodeSelector[{key}]",
		"reason": $"\"{own}\" contradicts \"{wanted}\" of the class",
		"hint": "remove the key",
	}
}

# A pod that is bound by name passes no scheduler.
node_name(class) := {mark |
	node := input.pod.spec.nodeName
	node != ""
	not class.name in input.node.runtimeClasses
	not doubted(class)
	mark := {
		"field": "spec.nodeName",
		"reason": $"node \"{node}\" is not in the pool of the class",
		"hint": "leave nodeName to the scheduler",
	}
}

# A node that is not known, or whose kubelet does not say what it offers, gets the
# benefit of the doubt where no floor depends on it, as it does from class.everywhere.
doubted(class) if {
	trust.level.floor == "host-kernel"
	not input.node.reports
	class.everywhere
	count(class.nodeSelector) == 0
}

# METADATA
# title: Whether no ready node of the class's pool carries the pod's own selector today
# description: A node that does may come, so this rules nothing out.
# scope: rule
unmet(class) if {
	input.node.selects
	not class.name in object.get(input.node, "fits", [])
}

# The controller of a DaemonSet does not see a selector that is added to its pods, and
# makes pods for the other nodes in a loop.
daemon_set(class) := {mark |
	some owner in input.pod.metadata.ownerReferences
	owner.kind == "DaemonSet"
	not already_selects(class)
	mark := {
		"field": "metadata.ownerReferences",
		"reason": "the DaemonSet's template does not select the pool of the class",
		"hint": advice(class),
	}
}

already_selects(class) if {
	class.everywhere
	every key, value in class.nodeSelector {
		input.pod.spec.nodeSelector[key] == value
	}
}

advice(class) := $"add nodeSelector {concat(", ", [$"{key}: {value}" | some key, value in class.nodeSelector])} to the DaemonSet's template" if {
	count(class.nodeSelector) > 0
} else := "give the class a nodeSelector, and the DaemonSet's template too"

# One term that the pool can satisfy is enough.
affinity(class) := {mark |
	terms := input.pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
	count(terms) > 0
	every term in terms {
		refuses(term, class)
	}
	mark := {
		"field": "spec.affinity.nodeAffinity",
		"reason": $"every required term contradicts {concat(", ", [$"{key}={value}" | some key, value in class.nodeSelector])} of the class",
		"hint": "add a term that the pool satisfies",
	}
}

refuses(term, class) if {
	some expression in term.matchExpressions
	label := class.nodeSelector[expression.key]
	not satisfied(expression, label)
}

satisfied(expression, label) if {
	expression.operator == "In"
	label in expression.values
}

satisfied(expression, label) if {
	expression.operator == "NotIn"
	not label in expression.values
}

satisfied(expression, _) if expression.operator == "Exists"

satisfied(expression, label) if {
	expression.operator == "Gt"
	integer(label) > integer(expression.values[0])
}

satisfied(expression, label) if {
	expression.operator == "Lt"
	integer(label) < integer(expression.values[0])
}

integer(text) := to_number(text) if regex.match(`^-?[0-9]+$`, text)
