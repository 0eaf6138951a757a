package router.custom

exemptions contains "ours run as they are" if input.pod.spec.containers[0].image
