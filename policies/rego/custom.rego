# Hooks: what an author may add to without forking. Write a module of this package
# that adds to one of these sets. As shipped they are empty.
package router.custom

# METADATA
# title: Reasons to refuse the pod, each a sentence for its developer
# scope: rule
denials contains message if some message in []

# METADATA
# title: Reasons to leave the pod untouched
# scope: rule
# description: An exemption passes the floor of the pod's trust level like any other answer.
exemptions contains reason if some reason in []

# METADATA
# title: Extra compatibility marks
# scope: rule
# description: |
#   Objects {field, verdict, runtimes, reason, hint}; verdict is deny, prefer or
#   warn, and runtimes are families or class:NAME. One with another verdict, or
#   without one of the keys, is a fault of the policy, and untrusted pods are refused
#   until it is mended.
findings contains mark if some mark in []

# METADATA
# title: A list of runtimes that replaces the level's candidates
# scope: rule
# description: Two different lists are a conflict, and the pod is refused.
candidates contains runtimes if some runtimes in []

# METADATA
# title: The workload profile of a pod that is not labelled with one
# scope: rule
# description: |
#   Neither the pod nor its namespace is. Two different profiles are a conflict, and the
#   pod is refused.
profiles contains profile if some profile in []

# METADATA
# title: Trust levels that the pod is lowered to, and why
# scope: rule
# description: |
#   A set of sentences by the name of a level, as in `lowered.untrusted contains "..."`.
#   A level above what the labels allow changes nothing, and one that does not exist
#   counts as the least trusted.
lowered[level] contains reason if some level, reason in {}
