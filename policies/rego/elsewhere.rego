# METADATA
# title: Elsewhere
# description: |
#   Pods that no runtime of this cluster's Linux nodes will run: Windows pods, and pods
#   for virtual nodes. A trusted one is left untouched.
# schemas:
#   - data.config: schema.config
package router.elsewhere

windows := "spec.os.name" if {
	input.pod.spec.os.name == "windows"
} else := "spec.nodeSelector[kubernetes.io/os]" if {
	input.pod.spec.nodeSelector["kubernetes.io/os"] == "windows"
} else := "spec.affinity.nodeAffinity" if {
	terms := input.pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
	count(terms) > 0
	every term in terms {
		some expression in term.matchExpressions
		expression.key == "kubernetes.io/os"
		expression.operator == "In"
		expression.values == ["windows"]
	}
}

virtual := "spec.nodeSelector[type]" if {
	input.pod.spec.nodeSelector.type == "virtual-kubelet"
} else := "spec.schedulerName" if {
	input.pod.spec.schedulerName == "fargate-scheduler"
} else := "metadata.labels[eks.amazonaws.com/fargate-profile]" if {
	input.pod.metadata.labels["eks.amazonaws.com/fargate-profile"]
} else := "spec.tolerations[virtual-kubelet.io/provider]" if {
	some toleration in input.pod.spec.tolerations
	toleration.key == "virtual-kubelet.io/provider"
}

# METADATA
# title: The field that sends the pod elsewhere; undefined for other pods
# scope: rule
field := windows if {
	windows
} else := virtual

# METADATA
# title: The virtual nodes of the configuration that the pod is bound to
# description: |
#   An untrusted pod may run there without a class. The same is worked out once more
#   outside the policy.
# scope: rule
isolating contains node.name if {
	not input.pod.spec.nodeName
	not input.pod.spec.runtimeClassName
	some node in data.config.isolatingVirtualNodes
	bound(node)
}

bound(node) if node.schedulerName == input.pod.spec.schedulerName

bound(node) if {
	count(node.nodeSelector) > 0
	every key, value in node.nodeSelector {
		input.pod.spec.nodeSelector[key] == value
	}
}
