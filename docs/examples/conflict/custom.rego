package router.custom

# Loaded, since no self-test pod has both labels; refused for a pod that has.
candidates contains ["gvisor"] if input.pod.metadata.labels["example.com/cheap"]

candidates contains ["kata-fc"] if input.pod.metadata.labels["example.com/fast"]
