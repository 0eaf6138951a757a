# METADATA
# title: Debugging
# description: |
#   Ephemeral containers that are added to a running pod. They run in the pod's own
#   sandbox, so only what they use is judged, and the class stays. A pod whose class is
#   below the floor, because its namespace was labelled after it started, may still be
#   debugged, by containers that any sandbox could run.
package router.debugging

import data.router.compatibility
import data.router.placement
import data.router.selection

asked if input.request.subResource == "ephemeralcontainers"

class := placement.present_class if {
	not selection.below_floor(placement.present_class)
} else := compatibility.unknown

# METADATA
# title: What stands against the new containers
# scope: rule
obstacles := compatibility.marks(class, "deny")

reasons := [$"this debug container cannot run in a sandbox: {selection.words(obstacles)}"]
