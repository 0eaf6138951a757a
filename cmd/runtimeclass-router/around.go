package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// around is what the decision on one pod reads of a cluster. Where the user may not read
// it, something is assumed, and said.
type around struct {
	catalog   *catalog.Catalog
	namespace *catalog.Namespace
	selection registration.Selection // whose pods the webhook is asked about
	read      []string
	assumed   []string
}

// look reads what is around a pod in a namespace: of the files what is there, and the rest
// of the cluster, if there is a client.
func (a *around) look(ctx context.Context, client kubernetes.Interface, files *catalog.Manifests, namespace string) error {
	if err := a.lookNamespace(ctx, client, files, namespace); err != nil {
		return err
	}
	return a.lookCatalog(ctx, client, files)
}

func (a *around) lookNamespace(ctx context.Context, client kubernetes.Interface, files *catalog.Manifests, name string) error {
	if found := files.Namespaces()[name]; found != nil {
		a.namespace = found
		a.read = append(a.read, fmt.Sprintf("namespace %s: of the files", name))
		return nil
	}
	a.namespace = &catalog.Namespace{Name: name}
	missing := "is not among the files"
	if client != nil {
		live, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			a.namespace = &catalog.Namespace{Name: name, Labels: live.Labels, Annotations: live.Annotations}
			a.read = append(a.read, fmt.Sprintf("namespace %s: of the cluster", name))
			return nil
		}
		if !unreadable(err) {
			return fmt.Errorf("get namespace %s: %w", name, err)
		}
		missing = lacking(err, "get namespaces/"+name)
	}
	a.assume("namespace %s %s: it counts as without labels; give it as --cluster FILE", name, missing)
	return nil
}

func (a *around) lookCatalog(ctx context.Context, client kubernetes.Interface, files *catalog.Manifests) error {
	classes, nodes := objectsOf[*nodev1.RuntimeClass](files), objectsOf[*corev1.Node](files)
	if len(classes) > 0 {
		a.read = append(a.read, "RuntimeClasses: of the files")
	}
	if len(nodes) > 0 {
		a.read = append(a.read, "nodes: of the files")
	}
	if client == nil {
		if len(classes) == 0 {
			return a.example("RuntimeClasses are not among the files")
		}
		a.catalog = catalog.Build(classes, nodes)
		return nil
	}
	if len(classes) == 0 {
		list, err := client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
		switch {
		case err == nil:
			a.read = append(a.read, "RuntimeClasses: of the cluster")
		case unreadable(err):
			return a.example("RuntimeClasses " + lacking(err, "list runtimeclasses.node.k8s.io"))
		default:
			return fmt.Errorf("list runtime classes: %w", err)
		}
		classes = pointersTo(list.Items)
	}
	if len(nodes) == 0 {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		switch {
		case err == nil:
			a.read = append(a.read, "nodes: of the cluster")
			nodes = pointersTo(list.Items)
		case unreadable(err):
			a.assume("nodes %s: every RuntimeClass counts as having a ready node, and none as supporting user namespaces or "+
				"recursive read-only mounts; give them as --cluster FILE", lacking(err, "list nodes"))
			classes = available(classes)
		default:
			return fmt.Errorf("list nodes: %w", err)
		}
	}
	a.catalog = catalog.Build(classes, nodes)
	return nil
}

// example takes the embedded cluster.
func (a *around) example(why string) error {
	m := &catalog.Manifests{}
	if err := m.Add("embedded example cluster", exampleCluster); err != nil {
		return err
	}
	a.catalog = m.Catalog()
	var names []string
	for i := range a.catalog.RuntimeClasses {
		names = append(names, a.catalog.RuntimeClasses[i].Name)
	}
	a.assume("%s: an example cluster stands in, with %s and a ready node of each; "+
		"give yours as --cluster FILE, which whoever may list them makes by: kubectl get runtimeclasses,nodes -o yaml", why, strings.Join(names, ", "))
	return nil
}

func (a *around) assume(format string, args ...any) {
	a.assumed = append(a.assumed, fmt.Sprintf(format, args...))
}

// available are classes whose pool counts as ready whatever nodes there are.
func available(classes []*nodev1.RuntimeClass) []*nodev1.RuntimeClass {
	var copies []*nodev1.RuntimeClass
	for _, class := range classes {
		class = class.DeepCopy()
		labels := maps.Clone(class.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[catalog.LabelAvailability] = "autoscaled"
		class.Labels = labels
		copies = append(copies, class)
	}
	return copies
}

// layered are the Namespaces, RuntimeClasses and Nodes of --cluster, and of the manifests
// beside the pods: of a kind that --cluster has, no others, but namespaces by name, of which
// those that are about to be applied win.
func layered(cluster, beside *catalog.Manifests) *catalog.Manifests {
	has := map[string]bool{}
	for _, d := range cluster.Documents {
		has[d.GVK.Kind] = d.GVK.Kind != "Namespace"
	}
	all := &catalog.Manifests{Documents: slices.Clone(cluster.Documents)}
	for _, d := range beside.Documents {
		if !has[d.GVK.Kind] {
			all.Documents = append(all.Documents, d)
		}
	}
	return all
}

func objectsOf[T any](m *catalog.Manifests) []T {
	var found []T
	for i := range m.Documents {
		if object, ok := m.Documents[i].Object.(T); ok {
			found = append(found, object)
		}
	}
	return found
}

func pointersTo[T any](items []T) []*T {
	found := make([]*T, 0, len(items))
	for i := range items {
		found = append(found, &items[i])
	}
	return found
}
