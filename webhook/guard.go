package webhook

import (
	"errors"
	"fmt"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// ErrClassGone marks a RuntimeClass that was deleted between the decision and the
// patch. The same pod, created again, is decided anew.
var ErrClassGone = errors.New("runtime class is gone")

// guarded is a decision that passed the guard.
type guarded struct {
	// class is what the pod will run under; nil for the node's default, and for a
	// pod that is denied.
	class *catalog.RuntimeClass
	// exception names what lets the pod run below its floor; empty for every other.
	exception string
}

// guard checks a decision against what no policy may loosen. Whatever the action, a
// pod that is admitted gets at least the floor of its trust level, unless the
// configuration excepts it or lists what it is bound to as isolating, and its trust is at most the bound of its labels.
func guard(snapshot *policies.Snapshot, in *policies.Input, pod *Pod, decision *policies.Decision) (guarded, error) {
	config := snapshot.Config()
	limit := bound(config, in.Namespace.Labels, pod.Labels)
	switch position := config.Position(decision.Trust); {
	case !config.Known(decision.Trust):
		return guarded{}, unsafe("trust %q is not a configured level", decision.Trust)
	case position < limit:
		return guarded{}, unsafe("trust %q is more than the labels allow: %q", decision.Trust, config.Levels[limit].Name)
	}
	if decision.Action == policies.Deny {
		return guarded{}, nil
	}
	name := pod.RuntimeClassName
	if decision.Action == policies.Route {
		name = decision.RuntimeClassName
	} else if decision.RuntimeClassName != "" && decision.RuntimeClassName != name {
		return guarded{}, unsafe("action %s names runtime class %q and the pod has %q", decision.Action, decision.RuntimeClassName, name)
	}
	class := snapshot.Catalog().RuntimeClass(name)
	if class == nil && name != "" && decision.Action == policies.Route {
		return guarded{}, unsafe("runtime class %q does not exist", name)
	}
	floor := config.Levels[config.Position(decision.Trust)].Floor
	exception, met := meets(config, in, pod, name, class, floor)
	if !met {
		return guarded{}, unsafe("action %s would run a pod of trust %q under %s (runtime class %q), below the floor %s",
			decision.Action, decision.Trust, isolationOf(class), name, floor)
	}
	return guarded{class: class, exception: exception}, nil
}

// meets reports whether a pod may run under the class of that name, nil where there is
// none, and which exception lets it where the class is below the floor.
func meets(config *policies.Config, in *policies.Input, pod *Pod, name string, class *catalog.RuntimeClass, floor catalog.Isolation) (exception string, met bool) {
	if isolationOf(class).AtLeast(floor) {
		return "", true
	}
	if exception = excepted(config, in, pod, name); exception != "" {
		return exception, true
	}
	return "", name == "" && virtual(config, pod)
}

// excepted returns the name of an exception that lets the pod run under the class
// today, and "" where there is none. Like the bound it is worked out apart from the
// policy.
func excepted(config *policies.Config, in *policies.Input, pod *Pod, class string) string {
	for i := range config.Exceptions {
		e := &config.Exceptions[i]
		if class != "" && e.RuntimeClassName == class &&
			e.Applies(in.Namespace.Name, pod.ServiceAccountName, pod.Labels, in.Request.Date) {
			return e.Name
		}
	}
	return ""
}

// virtual reports whether the pod is bound to a virtual node that the configuration
// lists as isolating.
func virtual(config *policies.Config, pod *Pod) bool {
	for i := range config.IsolatingVirtualNodes {
		if config.IsolatingVirtualNodes[i].Binds(pod.NodeSelector, pod.SchedulerName, pod.NodeName, pod.RuntimeClassName) {
			return true
		}
	}
	return false
}

// isolationOf counts the node's default runtime, and a class that the catalog does
// not know, as no isolation.
func isolationOf(class *catalog.RuntimeClass) catalog.Isolation {
	if class == nil {
		return catalog.HostKernel
	}
	return class.Isolation
}

func unsafe(format string, args ...any) error {
	return &policies.Fault{Kind: policies.Unsafe, Err: fmt.Errorf(format, args...)}
}
