package webhook

import (
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Standing is how a pod that runs stands against the guard: by the same bound on its
// trust, the same floors and the same exceptions as a pod that asks to be let in.
type Standing struct {
	// Trust is the most trusted level that the labels of today allow, and Floor its floor.
	Trust string
	Floor catalog.Isolation
	// Isolation is that of the pod's class, as its handler is today. A class that is gone,
	// and the node's default, count as none.
	Isolation catalog.Isolation
	// Below: the pod runs below the floor, and nothing lets it.
	Below bool
}

// Stand judges a pod that runs under a class of that name, the node's default where it is
// empty. in is of the pod as it was sent: the node that a scheduler chose is no choice of
// the pod's. No policy is asked.
func Stand(snapshot *policies.Snapshot, in *policies.Input, class string) (Standing, error) {
	pod, err := decodePod(in.Pod)
	if err != nil {
		return Standing{}, err
	}
	pod.RuntimeClassName = class
	config := snapshot.Config()
	level := config.Levels[bound(config, in.Namespace.Labels, pod.Labels)]
	found := snapshot.Catalog().RuntimeClass(class)
	_, met := meets(config, in, pod, class, found, level.Floor)
	return Standing{Trust: level.Name, Floor: level.Floor, Isolation: isolationOf(found), Below: !met}, nil
}
