package doctor

import (
	"fmt"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// Files is the cluster of manifests: what makes pods, and what is around them. What a file
// cannot tell is a lack.
func Files(release Release, exempt []string, pods *survey.Manifests, around *catalog.Manifests, progress survey.Progress) *Cluster {
	c := &Cluster{Release: release, Now: time.Now(), exempt: exempt, whyFlags: " --filename FILE", lacks: map[Need]lack{}, namespaces: map[string]*catalog.Namespace{}}
	for i := range around.Documents {
		switch object := around.Documents[i].Object.(type) {
		case *nodev1.RuntimeClass:
			c.classes = append(c.classes, object)
		case *corev1.Node:
			c.nodes = append(c.nodes, object)
		case *corev1.Namespace:
			c.addNamespace(object)
		}
	}
	for need, listed := range map[Need]struct {
		found    int
		resource string
	}{
		needClasses: {len(c.classes), "runtimeclasses"}, needNodes: {len(c.nodes), "nodes"}, needNamespaces: {len(c.namespaces), "namespaces"},
	} {
		if listed.found == 0 {
			c.lacks[need] = lack{fmt.Sprintf("needs %s, of which none are among the files", need), "kubectl get " + listed.resource + " -o yaml"}
		}
	}
	for _, need := range []Need{needWebhooks, needGuards, needParameters, needSecret} {
		c.lacks[need] = lack{fmt.Sprintf("needs %s of a live cluster", need), "runtimeclass-router doctor --context NAME"}
	}
	c.items = func() iter.Seq2[*survey.Item, error] { return pods.Items(progress) }
	c.ended = func() error { return nil }
	c.catalog = catalog.Build(c.classes, c.nodes)
	return c
}
