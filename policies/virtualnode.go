package policies

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fargateScheduler places a pod on AWS Fargate, and on nothing else.
const fargateScheduler = "fargate-scheduler"

// VirtualNode is a kind of virtual node that isolates by itself. There is no CRI behind
// it that could honour a runtime class.
type VirtualNode struct {
	Name string `json:"name"`
	// NodeSelector or SchedulerName is what binds a pod to it.
	NodeSelector  map[string]string `json:"nodeSelector,omitempty"`
	SchedulerName string            `json:"schedulerName,omitempty"`
}

// Binds reports whether a pod with that placement runs there and nowhere else. One that
// names its node passes no scheduler, and one with a class is for a node of the cluster.
func (v *VirtualNode) Binds(nodeSelector map[string]string, schedulerName, nodeName, runtimeClassName string) bool {
	if nodeName != "" || runtimeClassName != "" {
		return false
	}
	if v.SchedulerName != "" {
		return schedulerName == v.SchedulerName
	}
	for key, value := range v.NodeSelector {
		if has, ok := nodeSelector[key]; !ok || has != value {
			return false
		}
	}
	return len(v.NodeSelector) > 0
}

func (v *VirtualNode) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if (len(v.NodeSelector) > 0) == (v.SchedulerName != "") {
		errs = append(errs, field.Invalid(path, v.Name, "give nodeSelector or schedulerName, and not both"))
	}
	if v.SchedulerName != "" && v.SchedulerName != fargateScheduler {
		errs = append(errs, field.NotSupported(path.Child("schedulerName"), v.SchedulerName, []string{fargateScheduler}))
	}
	return errs
}
