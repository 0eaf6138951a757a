package router.custom

denials contains "the default namespace is not for workloads" if input.request.namespace == "default"
