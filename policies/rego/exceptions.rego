# METADATA
# title: Exceptions
# description: |
#   Pods that may run below their floor until a day, by the configuration. The same is
#   worked out once more outside the policy, before a pod below its floor is let in.
# schemas:
#   - data.config: schema.config
package router.exceptions

import data.router.index

covering contains exception if {
	some exception in index.exceptions[input.namespace.name]
	service_account(exception)
	pod_labels(exception)
}

service_account(exception) if count(object.get(exception, "serviceAccounts", [])) == 0

service_account(exception) if input.pod.spec.serviceAccountName in exception.serviceAccounts

pod_labels(exception) if {
	every key, value in object.get(exception, "podLabels", {}) {
		input.pod.metadata.labels[key] == value
	}
}

# METADATA
# title: The exceptions that apply to the pod today
# scope: rule
active contains exception if {
	some exception in covering
	days_left(exception) >= 0
}

days_left(exception) := (time.parse_ns("2006-01-02", exception.until) - time.parse_ns("2006-01-02", input.request.date)) / 86400000000000

warnings contains $"exception {exception.name} expired on {exception.until} and no longer applies: {exception.owner}, {exception.ticket}" if {
	some exception in covering
	days_left(exception) < 0
}

warnings contains $"exception {exception.name} expires on {exception.until}: {exception.owner}, {exception.ticket}" if {
	some exception in active
	days_left(exception) <= 14
}
