package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Route is what happens to one pod, and why.
type Route struct {
	Action policies.Action `json:"action"`
	Trust  string          `json:"trust"`
	Mode   policies.Mode   `json:"mode"`
	// Isolation is that of the class the pod ends up with; empty when it is denied.
	Isolation                catalog.Isolation `json:"isolation"`
	RuntimeClassName         string            `json:"runtimeClassName"`
	PreviousRuntimeClassName string            `json:"previousRuntimeClassName"`
	// NodeSelector, Tolerations and Overhead are the pod's after routing.
	NodeSelector map[string]string   `json:"nodeSelector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
	Overhead     corev1.ResourceList `json:"overhead"`
	Reasons      []string            `json:"reasons"`
	Warnings     []string            `json:"warnings"`
	// Patch is empty in modes warn and audit, and when nothing has to change.
	Patch []jsonpatch.Operation `json:"patch"`

	// Exception names what let the pod run below its floor; empty for every other.
	Exception string `json:"-"`
	// PolicyRevision identifies the policy that decided, CatalogRevision what it knew of the
	// cluster.
	PolicyRevision  string `json:"-"`
	CatalogRevision string `json:"-"`
	// Remembered tells that the policy was not asked, because an earlier pod looked the same.
	Remembered bool `json:"-"`
}

// Router routes pods by what an engine decides.
type Router struct {
	Engine *policies.Engine
}

// Route decides on one pod of a CREATE review. On an error the route carries no more
// than the mode of the namespace, if it got that far.
func (r *Router) Route(ctx context.Context, in policies.Input) (Route, error) {
	route, d, err := r.decide(ctx, in)
	if err != nil {
		return route, err
	}
	passed, err := guard(d.snapshot, &in, d.pod, &d.Decision)
	if err != nil {
		return route, err
	}
	if err := r.stillThere(passed.class, &d.Decision); err != nil {
		return route, err
	}
	from := d.snapshot.Catalog().RuntimeClass(d.pod.RuntimeClassName)
	complete, err := route.complete(d.pod, &d.Decision, from, passed.class)
	if err != nil {
		return route, err
	}
	complete.Exception = passed.exception
	return complete, nil
}

// decided is what the policy said about a pod, and what it was asked over.
type decided struct {
	policies.Decision
	pod      *Pod
	snapshot *policies.Snapshot
}

// decide decodes the pod and asks the policy. The route has the mode and the revision.
func (r *Router) decide(ctx context.Context, in policies.Input) (Route, decided, error) {
	snapshot, err := r.Engine.Snapshot()
	if err != nil {
		return Route{}, decided{}, err
	}
	route := Route{Mode: modeOf(snapshot.Config(), in.Namespace.Labels), PolicyRevision: snapshot.Revision(), CatalogRevision: snapshot.Catalog().Revision()}
	pod, err := decodePod(in.Pod)
	if err != nil {
		return route, decided{}, err
	}
	decision, err := snapshot.Decide(ctx, in)
	route.Remembered = decision.Remembered
	return route, decided{Decision: decision, pod: pod, snapshot: snapshot}, err
}

// stillThere looks a chosen class up once more, in what the engine knows by now.
func (r *Router) stillThere(class *catalog.RuntimeClass, decision *policies.Decision) error {
	if class == nil || decision.Action != policies.Route {
		return nil
	}
	latest, err := r.Engine.Snapshot()
	if err != nil {
		return err
	}
	if latest.Catalog().RuntimeClass(class.Name) == nil {
		return fmt.Errorf("%w: %s was deleted while this pod was being admitted; create the pod again", ErrClassGone, class.Name)
	}
	return nil
}

// complete fills in the route and the patch.
func (route Route) complete(pod *Pod, decision *policies.Decision, from, to *catalog.RuntimeClass) (Route, error) {
	route.Action, route.Trust = decision.Action, decision.Trust
	route.Reasons, route.Warnings = decision.Reasons, decision.Warnings
	route.PreviousRuntimeClassName = pod.RuntimeClassName
	var ops []jsonpatch.Operation
	switch decision.Action {
	case policies.Deny:
		return route, nil
	case policies.Route:
		p, err := place(pod, from, to, decision.NodeSelector, decision.Tolerations)
		if err != nil {
			return route, err
		}
		route.RuntimeClassName = decision.RuntimeClassName
		route.NodeSelector, route.Tolerations, route.Overhead = p.nodeSelector, p.tolerations, p.overhead
		ops = patch(pod, p)
	default:
		route.RuntimeClassName = pod.RuntimeClassName
		route.NodeSelector, route.Tolerations, route.Overhead = pod.NodeSelector, pod.Tolerations, pod.Overhead
	}
	route.Isolation = isolationOf(to)
	if route.Mode == policies.Enforce {
		route.Patch = slices.Concat(ops, patchAnnotations(pod, route.annotations(pod, len(ops) > 0), catalog.AnnotationFallback))
	}
	return route, nil
}

// annotations are what a pod that gets a patch carries, so that it explains itself.
// A pod whose route does not change gets none, since a patch costs the API server
// more than the call itself. But what such a pod claims already is made true: its
// trust and revision are compared, and the words beside them go with them.
func (route *Route) annotations(pod *Pod, changed bool) map[string]string {
	truth := map[string]string{
		catalog.AnnotationTrust:          route.Trust,
		catalog.AnnotationReason:         strings.Join(route.Reasons, "; "),
		catalog.AnnotationPolicyRevision: route.PolicyRevision,
	}
	claims := pod.Annotations
	claimed := func(key string) bool { _, ok := claims[key]; return ok }
	silent := !claimed(catalog.AnnotationTrust) && !claimed(catalog.AnnotationReason) && !claimed(catalog.AnnotationPolicyRevision)
	honest := has(claims, catalog.AnnotationTrust, route.Trust) && has(claims, catalog.AnnotationPolicyRevision, route.PolicyRevision)
	if fallback := claimed(catalog.AnnotationFallback); !changed && !fallback && (silent || honest) {
		return nil
	}
	return truth
}
