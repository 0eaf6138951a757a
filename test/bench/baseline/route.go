package main

import corev1 "k8s.io/api/core/v1"

const trustLabel = "runtimeclass-router.io/trust"

// route is what a pod is given.
type route struct {
	class string
	// selectorPath is selectorKey as a JSON pointer has it.
	selectorKey, selectorPath, selectorValue string
	toleration                               corev1.Toleration
}

// routes are the job, hard-coded: what the namespace's label leads to.
var routes = map[string]*route{
	"untrusted": {
		class:         "gvisor",
		selectorKey:   "example.com/pool",
		selectorPath:  "example.com~1pool",
		selectorValue: "gvisor",
		toleration: corev1.Toleration{
			Key: "example.com/sandbox", Operator: corev1.TolerationOpEqual, Value: "gvisor", Effect: corev1.TaintEffectNoSchedule,
		},
	},
}
