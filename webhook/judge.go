package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Judge decides on a pod as it will be stored, after every other webhook: with the
// same engine, the same guard and the same input as [Router.Route]. A pod of a
// sandboxed level that is not as it was routed is denied, and the reason names what
// differs. Nothing is patched.
func (r *Router) Judge(ctx context.Context, in policies.Input) (Route, error) {
	snapshot, err := r.Engine.Snapshot()
	if err != nil {
		return Route{}, err
	}
	if mode := modeOf(snapshot.Config(), in.Namespace.Labels); mode != policies.Enforce {
		// Nothing is refused here, and what there was to say the mutating endpoint has said.
		return Route{Action: policies.Keep, Mode: mode, PolicyRevision: snapshot.Revision()}, nil
	}
	route, d, err := r.decide(ctx, in)
	if err != nil {
		return route, err
	}
	passed, err := guard(d.snapshot, &in, d.pod, &d.Decision)
	if err != nil {
		return route, err
	}
	config := d.snapshot.Config()
	sandboxed := !catalog.HostKernel.AtLeast(config.Levels[config.Position(d.Trust)].Floor)
	route.Action, route.Trust, route.Reasons = d.Action, d.Trust, d.Reasons
	route.RuntimeClassName = d.pod.RuntimeClassName
	if d.Action == policies.Deny {
		return route, nil
	}
	if d.Action == policies.Route && !sandboxed {
		// The class that the level prefers is not there. That costs no isolation.
		route.Action = policies.Keep
	}
	route.Exception = passed.exception
	if !sandboxed {
		return route, nil
	}
	if changed := differences(d.pod, &d.Decision, passed.class); len(changed) > 0 {
		route.Action = policies.Deny
		route.Reasons = []string{fmt.Sprintf("the pod was changed after it was routed: %s", strings.Join(changed, ", ")), strings.Join(d.Reasons, "; ")}
	}
	return route, nil
}

// differences lists what of the pod is not as the decision wants it.
func differences(pod *Pod, decision *policies.Decision, class *catalog.RuntimeClass) []string {
	if decision.Action == policies.Route && decision.RuntimeClassName != pod.RuntimeClassName {
		return []string{fmt.Sprintf("spec.runtimeClassName is %q, and this pod gets %q", pod.RuntimeClassName, decision.RuntimeClassName)}
	}
	if class == nil {
		return nil
	}
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(class.NodeSelector)) {
		if value := class.NodeSelector[key]; !has(pod.NodeSelector, key, value) {
			changed = append(changed, fmt.Sprintf("spec.nodeSelector lacks %s=%s of runtime class %s", key, value, class.Name))
		}
	}
	return changed
}

// JudgeEphemeral decides on the ephemeral containers that a running pod is to get. The
// class of the pod is settled and its other containers run already, so a policy sees
// neither, and only mode and action count. pod and old are the pod as it will be and as
// it is.
func (r *Router) JudgeEphemeral(ctx context.Context, in policies.Input, pod, old json.RawMessage) (Route, error) {
	added, err := onlyAdded(pod, old)
	if err != nil {
		return Route{}, err
	}
	if in.Pod, err = readPod(added); err != nil {
		return Route{}, err
	}
	route, d, err := r.decide(ctx, in)
	if err != nil {
		return route, err
	}
	route.Action, route.Trust, route.Reasons = d.Action, d.Trust, d.Reasons
	route.RuntimeClassName = d.pod.RuntimeClassName
	if route.Action != policies.Deny {
		route.Action = policies.Keep
	}
	return route, nil
}

// onlyAdded is the pod with its labels, its class, those ephemeral containers that old
// has not, and the volumes that they mount.
func onlyAdded(pod, old json.RawMessage) (json.RawMessage, error) {
	type object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Labels map[string]string `json:"labels,omitempty"`
		} `json:"metadata"`
		Spec struct {
			RuntimeClassName    string            `json:"runtimeClassName,omitempty"`
			Containers          []map[string]any  `json:"containers"`
			EphemeralContainers []json.RawMessage `json:"ephemeralContainers,omitempty"`
			Volumes             []json.RawMessage `json:"volumes,omitempty"`
		} `json:"spec"`
	}
	var after, before object
	for raw, into := range map[*json.RawMessage]*object{&pod: &after, &old: &before} {
		if err := json.Unmarshal(*raw, into); err != nil {
			return nil, fmt.Errorf("%w pod: %w", ErrUndecodable, err)
		}
	}
	there := map[string]bool{}
	for _, container := range before.Spec.EphemeralContainers {
		there[string(container)] = true
	}
	after.Spec.EphemeralContainers = slices.DeleteFunc(after.Spec.EphemeralContainers, func(container json.RawMessage) bool { return there[string(container)] })
	mounted := mounts(after.Spec.EphemeralContainers)
	after.Spec.Volumes = slices.DeleteFunc(after.Spec.Volumes, func(volume json.RawMessage) bool { return !mounted[nameOf(volume)] })
	after.Spec.Containers = []map[string]any{{"name": "running"}}
	return json.Marshal(after)
}

// mounts are the names of the volumes that containers mount.
func mounts(containers []json.RawMessage) map[string]bool {
	names := map[string]bool{}
	for _, raw := range containers {
		var container struct {
			VolumeMounts []json.RawMessage `json:"volumeMounts"`
		}
		if json.Unmarshal(raw, &container) != nil {
			continue // what cannot be read mounts nothing; the policy sees the container itself
		}
		for _, mount := range container.VolumeMounts {
			names[nameOf(mount)] = true
		}
	}
	return names
}

func nameOf(raw json.RawMessage) string {
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &named) != nil {
		return ""
	}
	return named.Name
}
