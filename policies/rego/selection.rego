# METADATA
# title: Selection
# description: |
#   Which RuntimeClass a pod gets. A level whose floor is host-kernel is open: its
#   pods keep what they ask for and get the first candidate that runs everywhere.
#   Any other level is sandboxed: its pods keep a class that meets the floor and
#   can run them, and otherwise get the best candidate that can.
# schemas:
#   - data.catalog: schema.catalog
#   - data.config: schema.config
package router.selection

import data.router.compatibility
import data.router.custom
import data.router.exceptions
import data.router.index
import data.router.placement
import data.router.trust

sandboxed if trust.level.floor != "host-kernel"

# --- the profile, and the runtimes that it lists --------------------------------

profiles contains name if {
	some level in data.config.levels
	some name, _ in level.candidates
}

profile_label := label if {
	label := input.pod.metadata.labels["runtimeclass-router.io/workload-profile"]
} else := input.namespace.labels["runtimeclass-router.io/workload-profile"]

profile := profile_label if {
	profile_label in profiles
} else := "general" if {
	profile_label
} else := hooked if {
	some hooked in custom.profiles
	hooked in profiles
} else := "general"

runtimes := list if {
	some list in custom.candidates
} else := list if {
	list := trust.level.candidates[profile]
} else := trust.level.candidates.general

warnings contains message if {
	not profile_label in profiles
	message := sprintf(
		"label runtimeclass-router.io/workload-profile=%s is not a profile and counts as general: use one of %s",
		[profile_label, concat(", ", sort(profiles))],
	)
}

warnings contains $"profile {hooked} of the policy is not a profile and counts as general: use one of {concat(", ", sort(profiles))}" if {
	some hooked in custom.profiles
	not hooked in profiles
	not profile_label
}

# --- candidates -----------------------------------------------------------------

# Classes in the order of the list, and by name within a runtime.
candidates := index.listed[runtimes] if {
	index.listed[runtimes]
} else := index.of(runtimes)

provided(runtime) if index.named[runtime]

# An isolation that the table does not know cannot be vouched for.
strength := {"host-kernel": 0, "user-space-kernel": 1, "guest-kernel": 2}

below_floor(class) if object.get(strength, class.isolation, 0) < strength[trust.level.floor]

too_weak(class) := {{
	"field": "isolation",
	"reason": $"handler {class.handler} is {class.isolation}, below {trust.level.floor}, the floor of {trust.level.name}",
	"hint": "leave runtimeClassName out",
}} if {
	below_floor(class)
} else := set()

# METADATA
# title: Why a class cannot run the pod; empty where it can
# scope: rule
obstacles(class) := compatibility.marks(class, "deny") if {
	not placement.placed
	not below_floor(class)
} else := (too_weak(class) | placement.contradictions(class)) | compatibility.marks(class, "deny")

# The best candidate: pool ready, then no prefer mark, then the order of the list.
ranking := sort([[rank(class), i] |
	some i, class in candidates
	count(obstacles(class)) == 0
])

rank(class) := [waiting(class), marked(class)]

waiting(class) := 0 if {
	class.poolReady
	not placement.unmet(class)
} else := 1

marked(class) := 0 if {
	count(compatibility.marks(class, "prefer")) == 0
} else := 1

best := candidates[position]

# Where the first is as good as any, the others need not be looked at.
position := 0 if {
	count(obstacles(candidates[0])) == 0
	rank(candidates[0]) == [0, 0]
} else := ranking[0][1]

# --- open levels -----------------------------------------------------------------

suitable := [class |
	some class in candidates
	class.everywhere
	count(placement.contradictions(class)) == 0
]

# --- the choice --------------------------------------------------------------------

# METADATA
# title: The choice
# description: What to do, with which class, and why; undefined where nothing can run the pod.
# scope: rule
choice := {"action": "keep", "class": placement.asked, "reason": suitable_reason} if {
	not sandboxed
	placement.asked == suitable[0].name
} else := {"action": "keep", "class": placement.asked, "reason": $"the pod asks for {placement.asked}, and any class will do at this level"} if {
	not sandboxed
	placement.asked
} else := {"action": "route", "class": suitable[0].name, "reason": suitable_reason} if {
	not sandboxed
} else := {"action": "keep", "class": "", "reason": $"no class of {concat(", ", runtimes)} runs wherever the pod may be bound, so it keeps the node's default"} if {
	not sandboxed
} else := {"action": "keep", "class": placement.asked, "reason": excepted_reason[placement.asked]} if {
	excepted_reason[placement.asked]
} else := {"action": "route", "class": excepted, "reason": excepted_reason[excepted]} if {
	not placement.asked
} else := {"action": "keep", "class": placement.asked, "reason": best_reason} if {
	best.name == placement.asked
} else := {"action": "keep", "class": placement.asked, "reason": $"the pod asks for {placement.asked}, which meets the floor {trust.level.floor}"} if {
	placement.asked_class
	count(obstacles(placement.asked_class)) == 0
} else := {"action": "route", "class": best.name, "reason": best_reason}

# The classes that an exception lets the pod run under, and why.
excepted_reason[exception.runtimeClassName] := $"exception {exception.name} until {exception.until}: {exception.reason}" if {
	some exception in exceptions.active
	class := index.classes[exception.runtimeClassName]
	count(placement.contradictions(class)) == 0
	not earlier(exception)
}

# Of several exceptions for one class the first by name speaks.
earlier(exception) if {
	some other in exceptions.active
	other.runtimeClassName == exception.runtimeClassName
	other.name < exception.name
}

# For a pod that asks for none.
excepted := sort(object.keys(excepted_reason))[0]

suitable_reason := $"{suitable[0].name} is {of_the_list}"

best_reason := $"profile {profile}: {best.name} is {of_the_list}{skipped}"

of_the_list := "the only candidate" if {
	count(runtimes) == 1
} else := $"the first usable of {concat(", ", runtimes)}"

default skipped := ""

skipped := $" ({concat("; ", passed)})" if {
	position > 0
	count(passed) > 0
}

# What stood in the list before the choice, and why it was passed over.
passed := [$"{concat(", ", names)}: {why}" |
	some why in {passed_over(class) | some i, class in candidates; i < position}
	names := [class.name | some i, class in candidates; i < position; passed_over(class) == why]
]

passed_over(class) := sort(obstacles(class))[0].field if {
	count(obstacles(class)) > 0
} else := "no node is ready" if {
	not class.poolReady
} else := "no node carries the pod's selector" if {
	placement.unmet(class)
} else := sort(compatibility.marks(class, "prefer"))[0].field

warnings contains $"no node of runtime class {class.name} is ready: the pod waits until one is" if {
	some class in chosen
	sandboxed
	not class.poolReady
}

warnings contains $"no ready node of runtime class {class.name} carries the pod's node selector ({keys}): the pod waits until one does" if {
	some class in chosen
	sandboxed
	class.poolReady
	placement.unmet(class)
	keys := concat(", ", [$"{key}={value}" | some key, value in placement.own_selector])
}

warnings contains $"{mark.field} under runtime class {class.name}: {mark.reason}; {mark.hint}" if {
	some class in chosen
	sandboxed
	some mark in (compatibility.marks(class, "warn") | compatibility.marks(class, "prefer"))
}

warnings contains $"profile kernel-features runs under gVisor here: eBPF, io_uring, perf events and unusual system calls will not work" if {
	some class in chosen
	sandboxed
	profile == "kernel-features"
	class.isolation == "user-space-kernel"
}

warnings contains $"exception {exception.name} does not apply: runtime class {exception.runtimeClassName} does not exist or contradicts the pod's placement" if {
	sandboxed
	some exception in exceptions.active
	not excepted_reason[exception.runtimeClassName]
}

warnings contains $"runtime class {placement.asked} is replaced by {choice.class}: {why_not_asked}" if {
	choice.action == "route"
	placement.asked
}

why_not_asked := concat("; ", [$"{mark.field}: {mark.reason}" | some mark in obstacles(placement.asked_class)]) if {
	placement.asked_class
} else := "it is not in the catalog"

chosen contains index.classes[choice.class]

# --- the refusal ---------------------------------------------------------------------

# METADATA
# title: What ruled the candidates out
# description: |
#   What all have against them is said once, and candidates that fall for the same
#   rest are named together, to keep it short.
# scope: rule
refusals := array.concat(
	[$"{concat(", ", [class.name | some class in candidates])}: {words(common)}" | count(common) > 0],
	array.concat(
		[$"{concat(", ", names)}: {why}" |
			some why in ({words(obstacles(class) - common) | some class in candidates} - {""})
			names := [class.name | some class in candidates; words(obstacles(class) - common) == why]
		],
		[$"{concat(", ", absent)}: no such runtime in this cluster" |
			absent := [runtime | some runtime in runtimes; not provided(runtime)]
			count(absent) > 0
		],
	),
)

common := intersection({obstacles(class) | some class in candidates})

words(marks) := concat("; ", [$"{mark.field}: {mark.reason} ({mark.hint})" | some mark in marks])

# METADATA
# title: The fields that stand in the way, for a first sentence
# scope: rule
blamed contains mark.field if {
	some class in candidates
	some mark in obstacles(class)
}
