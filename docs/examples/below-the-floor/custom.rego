package router.custom

# Loaded, and caught for each pod that it exempts from a sandbox that it needs.
exemptions contains "the pod is ours" if input.pod.metadata.labels["example.com/owner"]
