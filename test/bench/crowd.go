package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// crowd labels what was made to fill the cluster, and can go again.
var crowd = client.MatchingLabels{"bench.example.com/crowd": "true"}

// creators is how many clients fill the cluster.
const creators = 16

// countNow counts what there is already.
func (g *grower) countNow(ctx context.Context) error {
	var nodes corev1.NodeList
	var namespaces corev1.NamespaceList
	var classes nodev1.RuntimeClassList
	for _, list := range []client.ObjectList{&nodes, &namespaces, &classes} {
		if err := g.Client.List(ctx, list); err != nil {
			return err
		}
	}
	g.nodesNow, g.namespacesNow, g.classesNow = len(nodes.Items), len(namespaces.Items), len(classes.Items)
	return nil
}

// fill creates what is missing, in parallel, and tells how far it is.
func (g *grower) fill(ctx context.Context, what string, now *int, size int, create func(ctx context.Context, i int) error) error {
	if size <= *now {
		return nil
	}
	var next atomic.Int64
	next.Store(int64(*now))
	_, err := drive(ctx, size-*now, creators, func(ctx context.Context) (time.Duration, error) {
		i := int(next.Add(1)) - 1
		if i%1000 == 0 {
			g.say("%d of %d %s", i, size, what)
		}
		return 0, create(ctx, i)
	})
	if err != nil {
		return err
	}
	*now = size
	return nil
}

// reachNodes has further ready nodes of gVisor's pool.
func (g *grower) reachNodes(ctx context.Context, size int) error {
	return g.fill(ctx, "nodes", &g.nodesNow, size, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("crowd-%d", i)
		return controlplane.CreateNode(ctx, g.Client, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(map[string]string{
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelHostname: name, "example.com/pool": "gvisor",
			})},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/sandbox", Value: "gvisor", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{
				Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				RuntimeHandlers: []corev1.NodeRuntimeHandler{{Name: ""}, {Name: "runsc"}},
			},
		})
	})
}

// reachNamespaces has further namespaces, half of them labelled untrusted.
func (g *grower) reachNamespaces(ctx context.Context, size int) error {
	return g.fill(ctx, "namespaces", &g.namespacesNow, size, func(ctx context.Context, i int) error {
		labels := labelled(map[string]string{"example.com/team": fmt.Sprintf("team-%d", i%50)})
		if i%2 == 0 {
			labels[catalog.LabelTrust] = "untrusted"
		}
		return g.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%d", i), Labels: labels}})
	})
}

// reachClasses has further sandboxes, which no node offers: candidates, each of them.
func (g *grower) reachClasses(ctx context.Context, size int) error {
	handlers := []string{"runsc", "kata-fc", "kata-clh", "kata-qemu"}
	return g.fill(ctx, "RuntimeClasses", &g.classesNow, size, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("z-crowd-%d", i) // behind those of cluster.yaml
		return g.Client.Create(ctx, &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(nil)},
			Handler:    handlers[i%len(handlers)],
			Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"example.com/pool": name}},
		})
	})
}

// shrink removes what a curve has made, but for the namespaces: the last curve is
// theirs, and the large cluster has them.
func (g *grower) shrink(ctx context.Context, curve string) error {
	var kind client.Object
	switch curve {
	case "nodes":
		kind = &corev1.Node{}
	case "classes":
		kind = &nodev1.RuntimeClass{}
	default:
		return nil
	}
	if err := g.Client.DeleteAllOf(ctx, kind, crowd); err != nil {
		return err
	}
	return g.countNow(ctx)
}

func labelled(labels map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range labels {
		all[key] = value
	}
	for key, value := range crowd {
		all[key] = value
	}
	return all
}
