package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// TestAround: what may not be read is said, with its right and what is assumed; nothing else
// is.
func TestAround(t *testing.T) {
	t.Parallel()
	files := &catalog.Manifests{}
	if err := files.Add("given", exampleCluster); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		forbid  []string // resources
		files   *catalog.Manifests
		assumed []string // parts, in order
		read    int
	}{
		"everything": {read: 3},
		"nodes":      {forbid: []string{"nodes"}, read: 2, assumed: []string{"nodes could not be read (it takes: list nodes): every RuntimeClass counts as having a ready node"}},
		"classes":    {forbid: []string{"runtimeclasses"}, read: 1, assumed: []string{"RuntimeClasses could not be read (it takes: list runtimeclasses.node.k8s.io): an example cluster stands in, with crun"}},
		"all": {forbid: []string{"namespaces", "nodes", "runtimeclasses"},
			assumed: []string{"namespace shop could not be read (it takes: get namespaces/shop): it counts as without labels", "RuntimeClasses could not be read"}},
		"all but the files": {forbid: []string{"namespaces", "nodes", "runtimeclasses"}, files: files, read: 2, assumed: []string{"namespace shop could not be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Handler: "runsc"}
			client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}}, class,
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			for _, resource := range test.forbid {
				client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
				})
			}
			if test.files == nil {
				test.files = &catalog.Manifests{}
			}
			a := &around{}
			if err := a.look(t.Context(), client, test.files, "shop"); err != nil {
				t.Fatal(err)
			}
			if len(a.assumed) != len(test.assumed) || len(a.read) != test.read {
				t.Fatalf("assumed %q, read %q", a.assumed, a.read)
			}
			for i, want := range test.assumed {
				if !strings.HasPrefix(a.assumed[i], want) {
					t.Errorf("assumed %q, want %q", a.assumed[i], want)
				}
			}
			if mine := a.catalog.RuntimeClass("mine"); mine != nil && mine.PoolReady != (name == "nodes") {
				t.Errorf("pool ready %t", mine.PoolReady)
			}
		})
	}
}

// TestAroundOfAClusterThatFails assumes nothing.
func TestAroundOfAClusterThatFails(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"namespaces", "nodes", "runtimeclasses"} {
		client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
		client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewServiceUnavailable("etcd is away")
		})
		if err := (&around{}).look(t.Context(), client, &catalog.Manifests{}, "shop"); err == nil || !strings.Contains(err.Error(), "etcd is away") {
			t.Errorf("%s: %v", resource, err)
		}
	}
}

// TestLayered: of a kind that --cluster has, no others; of namespaces, those beside the pods.
func TestLayered(t *testing.T) {
	t.Parallel()
	cluster, beside := &catalog.Manifests{}, &catalog.Manifests{}
	const class = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}, handler: %}\n---\n"
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {from: %}}}\n"
	for from, m := range map[string]*catalog.Manifests{"cluster": cluster, "beside": beside} {
		if err := m.Add(from, []byte(strings.ReplaceAll(class+namespace, "%", from))); err != nil {
			t.Fatal(err)
		}
	}
	all := layered(cluster, beside)
	if classes := objectsOf[*nodev1.RuntimeClass](all); len(classes) != 1 || classes[0].Handler != "cluster" {
		t.Errorf("classes %+v", classes)
	}
	if got := all.Namespaces()["shop"].Labels["from"]; got != "beside" {
		t.Errorf("the namespace is of %s", got)
	}
}
