package main

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
)

// refusal is files that are not put in force, by the object that carries them.
type refusal map[corev1.ObjectReference][]policies.Problem

// refusal finds the objects that a fault is of: those whose files it names, and where it
// names a place that is nobody's, or none, those that have changed since the last load.
func (l *loader) refusal(policy *sources.Policy, err error) refusal {
	found := refusal{}
	objects := l.set.Objects()
	for _, problem := range policies.Problems(err) {
		if object, ok := objectOf(policy, objects, problem.File); ok {
			found[object] = append(found[object], problem)
			continue
		}
		if policy == nil {
			continue // a source says which file it is
		}
		if id, ok := policy.Owner(problem.File); ok && id.Kind != sources.KindEmbedded {
			continue
		}
		for name, object := range objects {
			if changed(name, l.files, policy.Modules) {
				found[object] = append(found[object], problem)
			}
		}
	}
	return found
}

func objectOf(policy *sources.Policy, objects map[string]corev1.ObjectReference, file string) (corev1.ObjectReference, bool) {
	if policy != nil {
		if id, ok := policy.Owner(file); ok && id.Kind != sources.KindConfigMaps {
			return corev1.ObjectReference{}, false
		}
	}
	name, _, _ := strings.Cut(file, "/")
	object, ok := objects[name]
	return object, ok
}

// changed reports whether files below a name differ.
func changed(name string, before, after policies.Modules) bool {
	below := func(modules policies.Modules) policies.Modules {
		own := maps.Clone(modules)
		maps.DeleteFunc(own, func(file, _ string) bool { return !strings.HasPrefix(file, name+"/") })
		return own
	}
	return !maps.Equal(below(before), below(after))
}

// maxNote is what the API server takes of an Event's note, in bytes.
const maxNote = 1024

// tellObjects writes an Event on each object, so that `kubectl describe configmap` says
// why its policy is not in force.
func tellObjects(recorder events.EventRecorder) func(refusal) {
	return func(r refusal) {
		for object, problems := range r {
			var lines []string
			for _, problem := range problems {
				lines = append(lines, problem.String())
			}
			note := strings.Join(slices.Compact(lines), "\n")
			if len(note) > maxNote {
				note = strings.ToValidUTF8(note[:maxNote-len("...")], "") + "..."
			}
			recorder.Eventf(&object, nil, corev1.EventTypeWarning, "PolicyRefused", "LoadPolicy", "%s", note)
		}
	}
}
