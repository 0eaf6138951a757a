package catalog

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// poolReady reports whether a ready, schedulable node that the class's
// scheduling admits offers its handler. Where nodes report no handlers at all
// (kubelets before Kubernetes 1.30), a class that selects its nodes is believed,
// and one without a selector is not.
func poolReady(rc *RuntimeClass, nodes []*corev1.Node) bool {
	return slices.ContainsFunc(nodes, func(node *corev1.Node) bool { return ready(node) && inPool(rc, node) })
}

func inPool(rc *RuntimeClass, node *corev1.Node) bool {
	if !selects(rc.NodeSelector, node) || !tolerates(rc.Tolerations, node) {
		return false
	}
	if reported := node.Status.RuntimeHandlers; len(reported) > 0 {
		return offers(node, rc.Handler)
	}
	return len(rc.NodeSelector) > 0
}

// everywhere reports whether a pod that states no placement of its own can run
// under the class wherever the scheduler puts it: the class selects its own
// nodes, or every schedulable Linux node whose taints an ordinary pod tolerates
// offers the handler. Nodes that report no handlers get the benefit of the
// doubt. Forcing a class that half of the nodes lack makes pods fail in a loop.
func everywhere(rc *RuntimeClass, nodes []*corev1.Node) bool {
	if len(rc.NodeSelector) > 0 {
		return true
	}
	return !slices.ContainsFunc(nodes, func(node *corev1.Node) bool {
		return !node.Spec.Unschedulable && linux(node) && tolerates(nil, node) &&
			len(node.Status.RuntimeHandlers) > 0 && !offers(node, rc.Handler)
	})
}

func ready(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func linux(node *corev1.Node) bool {
	os := node.Labels[corev1.LabelOSStable]
	return os == "" || os == string(corev1.Linux)
}

func offers(node *corev1.Node, handler string) bool {
	return slices.ContainsFunc(node.Status.RuntimeHandlers, func(h corev1.NodeRuntimeHandler) bool { return h.Name == handler })
}

func selects(selector map[string]string, node *corev1.Node) bool {
	return carries(node.Labels, selector)
}

// tolerates reports whether a pod with these tolerations may be bound to the
// node. Taints that state a passing condition (node.kubernetes.io/not-ready and
// the like) are the business of [ready].
func tolerates(tolerations []corev1.Toleration, node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return toleratesTaint(&t, taint) }) {
			return false
		}
	}
	return true
}

func toleratesTaint(toleration *corev1.Toleration, taint *corev1.Taint) bool {
	return toleration.ToleratesTaint(klog.Background(), taint, true)
}

// features reports what the handler supports on every node of the class's pool that
// offers it, and on one at least. A kubelet refuses a pod that asks for more than its
// handler says (Node.status.runtimeHandlers[].features).
func features(rc *RuntimeClass, nodes []*corev1.Node) (userNamespaces, recursiveReadOnlyMounts bool) {
	any := false
	userNamespaces, recursiveReadOnlyMounts = true, true
	for _, node := range nodes {
		if !selects(rc.NodeSelector, node) || !tolerates(rc.Tolerations, node) {
			continue
		}
		for _, h := range node.Status.RuntimeHandlers {
			if h.Name != rc.Handler {
				continue
			}
			f := ptr.Deref(h.Features, corev1.NodeRuntimeHandlerFeatures{})
			any = true
			userNamespaces = userNamespaces && ptr.Deref(f.UserNamespaces, false)
			recursiveReadOnlyMounts = recursiveReadOnlyMounts && ptr.Deref(f.RecursiveReadOnlyMounts, false)
		}
	}
	return any && userNamespaces, any && recursiveReadOnlyMounts
}
