package webhook

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// TestANewNodeOfAPoolIsKnown: a second ready node leaves the catalog's revision as it
// is, and a pod that is bound to it must be judged by what it offers all the same.
func TestANewNodeOfAPoolIsKnown(t *testing.T) {
	t.Parallel()
	router, namespaces := newRouter(t)
	pool := map[string]string{"pool": "gvisor"}
	classes := []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc", Scheduling: &nodev1.Scheduling{NodeSelector: pool}}}
	var nodes []*corev1.Node
	for _, name := range []string{"first", "second"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pool}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: "runsc"}}
		nodes = append(nodes, node)
		if err := router.Engine.SetCatalog(t.Context(), catalog.Build(classes, nodes)); err != nil {
			t.Fatal(err)
		}
		route := mustRoute(t, router, namespaces["untrusted"], pod(`"nodeName": "`+name+`"`))
		if route.Action != policies.Route || route.RuntimeClassName != "gvisor" {
			t.Errorf("bound to node %s: %s, %q", name, route.Action, route.Reasons)
		}
	}
}
