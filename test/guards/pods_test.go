package guards

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

const (
	trustLabel = catalog.LabelTrust
	modeLabel  = catalog.LabelMode
	parameters = stack.Release + "-guards"
	poolLabel  = "example.com/pool"
)

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// trait changes one thing of a pod.
type trait func(*corev1.Pod)

func newPod(traits ...trait) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
	for _, apply := range traits {
		apply(pod)
	}
	return pod
}

func class(name string) trait {
	return func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To(name) }
}

func labelled(key, value string) trait {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func annotated(key, value string) trait {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func onNode(name string) trait { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func account(name string) trait { return func(p *corev1.Pod) { p.Spec.ServiceAccountName = name } }

func ownedBy(kind string) trait {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "u"}}
	}
}

func hostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }
func hostPID(p *corev1.Pod)     { p.Spec.HostPID = true }
func hostIPC(p *corev1.Pod)     { p.Spec.HostIPC = true }

func privileged(p *corev1.Pod) {
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
}

func privilegedInit(p *corev1.Pod) {
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
		Name: "init", Image: "example.com/image", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
	})
}

func bidirectional(p *corev1.Pod) {
	privileged(p)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: "scratch", MountPath: "/scratch", MountPropagation: ptr.To(corev1.MountPropagationBidirectional),
	})
}

// hostPath mounts a path of the host into the first container.
func hostPath(path string, kind corev1.HostPathType, readOnly bool) trait {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: ptr.To(kind)},
		}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/host", ReadOnly: readOnly})
	}
}

// device asks for one of a device plugin's resource.
func device(name corev1.ResourceName) trait {
	return func(p *corev1.Pod) {
		one := corev1.ResourceList{name: resource.MustParse("1")}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
	}
}

func classOf(pod *corev1.Pod) string { return ptr.Deref(pod.Spec.RuntimeClassName, "") }

// newNamespace creates a namespace with labels, given as "key=value" without our prefix.
func newNamespace(t *testing.T, labels ...string) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		object.Labels[catalog.Prefix+key] = value
	}
	if err := shared.CreateNamespace(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended by now.
		if err := clients.CoreV1().Namespaces().Delete(context.Background(), object.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	return object.Name
}

func try(t *testing.T, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return clients.CoreV1().Pods(namespace).Create(t.Context(), pod, dryRun)
}

func create(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := clients.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("the pod is refused: %v", err)
	}
	return created
}

// refusedBy fails the test unless the error is a policy's refusal, in the product's
// words, with all of want in it.
func refusedBy(t *testing.T, policy string, err error, want ...string) {
	t.Helper()
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "'"+stack.Release+"-"+policy+"'") {
		t.Fatalf("got %v, want a refusal by the %s", err, policy)
	}
	for _, text := range append(want, "denied request: runtimeclass-router: ") {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the refusal lacks %q: %v", text, err)
		}
	}
}
