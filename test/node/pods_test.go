//go:build linux

package node_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// prefix is of the product's labels and annotations. They are written out here: a test that took them
// from the product would follow it wherever it goes.
const prefix = "runtimeclass-router.io/"

// cluster is a running one, with the namespaces of the proofs.
type cluster struct{ *node.Cluster }

// The namespaces that the proofs share.
const (
	tenants  = "tenants"  // untrusted
	platform = "platform" // trusted
)

// namespace creates a namespace with labels of the product's.
func (c *cluster) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: prefixed(labels)}}
	if err := controlplane.CreateNamespace(t.Context(), c.Client, namespace); err != nil {
		t.Fatal(err)
	}
}

func prefixed(labels map[string]string) map[string]string {
	long := map[string]string{}
	for key, value := range labels {
		long[prefix+key] = value
	}
	return long
}

// container says what it runs on, and stays.
func container() corev1.Container {
	return corev1.Container{
		Name:            "main",
		Image:           node.BusyBox,
		ImagePullPolicy: corev1.PullNever,
		Command:         []string{"sh", "-c", node.ReportKernel + "; exec sleep 3600"},
	}
}

// spec is of a pod with one container that ends when it is told to.
func spec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		DNSPolicy:                     corev1.DNSDefault,
		EnableServiceLinks:            ptr.To(false),
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers:                    []corev1.Container{container()},
	}
}

// pod is one that asks for nothing.
func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec()}
}

// asking is a pod that asks for a class.
func asking(namespace, name, class string) *corev1.Pod {
	p := pod(namespace, name)
	p.Spec.RuntimeClassName = &class
	return p
}

// create creates an object, and returns what the API server warned of.
func (c *cluster) create(ctx context.Context, object client.Object, options ...client.CreateOption) ([]string, error) {
	config := rest.CopyConfig(c.Config)
	heard := &warnings{}
	config.WarningHandler = heard
	own, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	err = own.Create(ctx, object, options...)
	return heard.all(), err
}

// created is create where an error is the test's end.
func (c *cluster) created(t *testing.T, object client.Object) []string {
	t.Helper()
	heard, err := c.create(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return heard
}

// warnings are what one client was warned of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeader keeps the text.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

// class is the class that a pod has, and "" for none.
func class(p *corev1.Pod) string { return ptr.Deref(p.Spec.RuntimeClassName, "") }

// hold fails the test with each error.
func hold(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
