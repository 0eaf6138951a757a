package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

var poolChecks = []Check{
	{"pools", []Need{needClasses, needNodes}, "every RuntimeClass has a ready node that offers its handler", pools},
	{"floors", []Need{needClasses, needNodes, needPolicy}, "for every trust level there is a class that meets its floor, with a ready node", floors},
	{"handlers", []Need{needNodes}, "every node says which handlers it offers", handlers},
	{"isolation", []Need{needClasses}, "how every RuntimeClass isolates is known", isolations},
}

// pools finds classes without a ready node.
func pools(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	for i := range c.catalog.RuntimeClasses {
		if class := &c.catalog.RuntimeClasses[i]; !class.PoolReady {
			found = append(found, c.emptyPool(class))
		}
	}
	return found, nil
}

// emptyPool says what keeps nodes out of the pool, the nearest first.
func (c *Cluster) emptyPool(class *catalog.RuntimeClass) Finding {
	f := Finding{Severity: Warning, Object: "runtimeclass/" + class.Name}
	for _, node := range c.nodes {
		if !slices.Contains(c.catalog.Pools(node.Name), class.Name) {
			continue
		}
		f.Message, f.Next = fmt.Sprintf("its node %s is not ready", node.Name), "kubectl describe node "+node.Name
		if node.Spec.Unschedulable {
			f.Message, f.Next = fmt.Sprintf("its node %s is cordoned", node.Name), "kubectl uncordon "+node.Name
		}
		return f
	}
	for _, node := range c.nodes {
		if !slices.ContainsFunc(node.Status.RuntimeHandlers, func(h corev1.NodeRuntimeHandler) bool { return h.Name == class.Handler }) {
			continue
		}
		lacking := maps.Clone(class.NodeSelector)
		maps.DeleteFunc(lacking, func(key, value string) bool { has, ok := node.Labels[key]; return ok && has == value })
		if len(lacking) == 0 {
			f.Message = fmt.Sprintf("node %s offers handler %s, and has a taint that the class does not tolerate", node.Name, class.Handler)
			f.Next = "kubectl describe node " + node.Name
			return f
		}
		f.Message = fmt.Sprintf("node %s offers handler %s, and lacks labels that the class selects by", node.Name, class.Handler)
		f.Next = "kubectl label node " + node.Name + " --overwrite " + assignments(lacking)
		return f
	}
	f.Message = fmt.Sprintf("no node offers handler %s: pods that get the class wait; if its pool scales from zero, say so", class.Handler)
	f.Next = fmt.Sprintf("kubectl label runtimeclass %s %s=autoscaled", class.Name, catalog.LabelAvailability)
	return f
}

func assignments(labels map[string]string) string {
	var written []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		written = append(written, key+"="+labels[key])
	}
	return strings.Join(written, " ")
}

// floors finds levels whose pods would all wait, or be denied.
func floors(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	for _, level := range c.config.Levels {
		if catalog.HostKernel.AtLeast(level.Floor) {
			continue
		}
		var meet []string
		ready := false
		for i := range c.catalog.RuntimeClasses {
			if class := &c.catalog.RuntimeClasses[i]; class.Isolation.AtLeast(level.Floor) {
				meet, ready = append(meet, class.Name), ready || class.PoolReady
			}
		}
		f := Finding{Severity: Error, Object: "level/" + level.Name}
		switch {
		case len(meet) == 0:
			f.Message = fmt.Sprintf("no RuntimeClass meets its floor, %s: every pod would be denied", level.Floor)
			f.Next = "kubectl get runtimeclasses -o custom-columns=CLASS:.metadata.name,HANDLER:.handler"
		case !ready:
			f.Message = fmt.Sprintf("of the classes that meet its floor, %s, none has a ready node: %s", level.Floor, few(meet))
			f.Next = "kubectl get nodes -o custom-columns=NODE:.metadata.name,HANDLERS:.status.runtimeHandlers[*].name"
		default:
			continue
		}
		found = append(found, f)
	}
	return found, nil
}

// handlers finds nodes that say nothing of their runtime.
func handlers(_ context.Context, c *Cluster) ([]Finding, error) {
	var silent []string
	for _, node := range c.nodes {
		if len(node.Status.RuntimeHandlers) == 0 {
			silent = append(silent, node.Name)
		}
	}
	if len(silent) == 0 {
		return nil, nil
	}
	return []Finding{{
		Severity: Warning, Object: "node/" + silent[0],
		Message: fmt.Sprintf("%d of %d nodes report no handlers, and their pools are believed by their labels: %s", len(silent), len(c.nodes), few(silent)),
		Next:    fmt.Sprintf("kubectl get node %s -o jsonpath={.status.nodeInfo}", silent[0]),
	}}, nil
}

// isolations finds classes that count as no sandbox for want of a label, and labels that
// are ignored.
func isolations(_ context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	for i := range c.catalog.RuntimeClasses {
		class := &c.catalog.RuntimeClasses[i]
		object := "runtimeclass/" + class.Name
		for _, note := range class.Notes {
			found = append(found, Finding{
				Severity: Warning, Object: object, Message: note,
				Next: fmt.Sprintf("kubectl label runtimeclass %s %s-", class.Name, catalog.LabelIsolation),
			})
		}
		if class.Isolation == catalog.Unknown && len(class.Notes) == 0 {
			found = append(found, Finding{
				Severity: Note, Object: object,
				Message: fmt.Sprintf("handler %s is not known and counts as no isolation; if it is a sandbox, label it user-space-kernel or guest-kernel", class.Handler),
				Next:    fmt.Sprintf("kubectl label runtimeclass %s %s=guest-kernel", class.Name, catalog.LabelIsolation),
			})
		}
	}
	return found, nil
}
