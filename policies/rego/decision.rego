# METADATA
# title: The decision
# description: |
#   The entry point: exactly one object, decoded strictly. An answer is checked
#   against the floor of the pod's trust level after it has been given, whatever its
#   action.
package router

import data.router.compatibility
import data.router.custom
import data.router.debugging
import data.router.elsewhere
import data.router.exceptions
import data.router.selection
import data.router.trust

# METADATA
# title: The route of one pod
# entrypoint: true
# scope: document
decision := object.union(outcome, {
	"trust": trust.level.name,
	"warnings": sort(((trust.warnings | selection.warnings) | exceptions.warnings)),
})

outcome := {"action": "deny", "reasons": sort(custom.denials)} if {
	count(custom.denials) > 0
} else := {"action": "deny", "reasons": sort(compatibility.faults)} if {
	selection.sandboxed
	count(compatibility.faults) > 0
} else := {"action": "exempt", "reasons": sort(custom.exemptions)} if {
	count(custom.exemptions) > 0
} else := {"action": "deny", "reasons": debugging.reasons} if {
	debugging.asked
	selection.sandboxed
	count(debugging.obstacles) > 0
} else := {"action": "keep", "reasons": [trust.reason, "an ephemeral container shares the sandbox of its pod"]} if {
	debugging.asked
} else := {"action": "exempt", "reasons": [trust.reason, $"it is bound to {concat(", ", elsewhere.isolating)}, which the configuration lists as isolating"]} if {
	count(elsewhere.isolating) > 0
} else := {"action": "exempt", "reasons": [trust.reason, $"{elsewhere.field} sends the pod where no runtime class is honoured"]} if {
	not selection.sandboxed
	elsewhere.field
} else := {
	"action": selection.choice.action,
	"runtimeClassName": selection.choice.class,
	"reasons": [trust.reason, selection.choice.reason],
} if {
	selection.choice
} else := {"action": "deny", "reasons": array.concat([summary], selection.refusals)}

summary := $"no sandbox here can run this pod{blame}, and it needs one: {trust.reason}"

default blame := ""

blame := $" ({concat(", ", selection.blamed)})" if count(selection.blamed) > 0
