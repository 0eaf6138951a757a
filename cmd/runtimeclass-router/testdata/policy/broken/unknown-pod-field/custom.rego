package router.custom

denials contains "no" if input.pod.spec.hostNetwrok

denials contains "no init containers" if count(input.pod.spec.initContainer) > 0
