package router.custom

# An author's own rule.
denials contains $"label example.com/forbidden={why} is not for this cluster" if {
	why := input.pod.metadata.labels["example.com/forbidden"]
}

# Two lists for one pod are a conflict, which no load-time check can foresee.
candidates contains ["gvisor"] if input.pod.metadata.labels["example.com/conflict"]

candidates contains ["kata-fc"] if input.pod.metadata.labels["example.com/conflict"]
