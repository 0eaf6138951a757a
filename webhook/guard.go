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

// guard checks a decision against what no policy may loosen, and returns the class
// that the pod will run under: nil for the node's default. Whatever the action, a
// pod that is admitted gets at least the floor of its trust level, and its trust is
// at most the bound of its labels.
func guard(snapshot *policies.Snapshot, in *policies.Input, pod *Pod, decision *policies.Decision) (*catalog.RuntimeClass, error) {
	config := snapshot.Config()
	limit := bound(config, in.Namespace.Labels, pod.Metadata.Labels)
	switch position := config.Position(decision.Trust); {
	case !config.Known(decision.Trust):
		return nil, unsafe("trust %q is not a configured level", decision.Trust)
	case position < limit:
		return nil, unsafe("trust %q is more than the labels allow: %q", decision.Trust, config.Levels[limit].Name)
	}
	if decision.Action == policies.Deny {
		return nil, nil
	}
	name := pod.Spec.RuntimeClassName
	if decision.Action == policies.Route {
		name = decision.RuntimeClassName
	} else if decision.RuntimeClassName != "" && decision.RuntimeClassName != name {
		return nil, unsafe("action %s names runtime class %q and the pod has %q", decision.Action, decision.RuntimeClassName, name)
	}
	class := snapshot.Catalog().RuntimeClass(name)
	if class == nil && name != "" && decision.Action == policies.Route {
		return nil, unsafe("runtime class %q does not exist", name)
	}
	isolation := isolationOf(class)
	if floor := config.Levels[config.Position(decision.Trust)].Floor; !isolation.AtLeast(floor) {
		return nil, unsafe("action %s would run a pod of trust %q under %s (runtime class %q), below the floor %s",
			decision.Action, decision.Trust, isolation, name, floor)
	}
	return class, nil
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
