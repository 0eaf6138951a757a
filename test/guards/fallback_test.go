package guards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestFallback while nobody else gives a sandbox.
func TestFallback(t *testing.T) {
	if canFallBack(shared.Release) {
		t.Run("on", givesASandbox)
	} else {
		t.Run("off", givesNone)
	}
}

func givesASandbox(t *testing.T) {
	untrusted, trusted := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=trusted")
	webhookDown(t)
	// A test before may have put it back a moment ago.
	eventually(t, func() error { return fallsBack(t, untrusted, newPod(), "gvisor") })
	for name, pod := range map[string]*corev1.Pod{
		"plain":           newPod(),
		"annotated":       newPod(annotated("example.com/a", "b")),
		"labels itself":   newPod(labelled(trustLabel, "trusted")),
		"replica":         newPod(ownedBy("ReplicaSet")),
		"mirror, it says": newPod(annotated(corev1.MirrorPodAnnotationKey, "x"), onNode("gvisor-1")),
	} {
		got := create(t, untrusted, pod)
		if classOf(got) != "gvisor" || got.Annotations[catalog.AnnotationFallback] != "gvisor" {
			t.Errorf("%s: class %q, annotations %v; want gvisor in both", name, classOf(got), got.Annotations)
		}
		if cpu := got.Spec.Overhead[corev1.ResourceCPU]; cpu.String() != "50m" {
			t.Errorf("%s: overhead %v, want the class's", name, got.Spec.Overhead)
		}
		if diff := cmp.Diff(map[string]string{poolLabel: "gvisor"}, got.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: nodeSelector (-want +got):\n%s", name, diff)
		}
		for key, value := range pod.Annotations {
			if got.Annotations[key] != value {
				t.Errorf("%s: annotation %s is lost", name, key)
			}
		}
	}
	if got := create(t, trusted, newPod()); classOf(got) != "" {
		t.Errorf("a trusted pod gets class %s", classOf(got))
	}
	if got := create(t, trusted, newPod(labelled(trustLabel, "untrusted"))); classOf(got) != "gvisor" {
		t.Errorf("a pod that lowers itself gets class %q, want gvisor", classOf(got))
	}
	if got := create(t, untrusted, newPod(class("kata-fc"))); classOf(got) != "kata-fc" || got.Annotations[catalog.AnnotationFallback] != "" {
		t.Errorf("a pod that asks for kata-fc gets %q, annotations %v", classOf(got), got.Annotations)
	}
}

// givesNone where the cluster does not serve what it is made of: asking for it is refused, not
// passed over, and the backstop stands alone.
func givesNone(t *testing.T) {
	served, err := clients.Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range served.APIResources {
		if strings.HasPrefix(resource.Name, "mutatingadmissionpolic") {
			t.Errorf("%s is served", resource.Name)
		}
	}
	for value, want := range map[string]string{
		"fallback.enabled=true":        "fallback.enabled: true: this cluster does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy (Kubernetes 1.36 and later do",
		"webhook.failurePolicy=Ignore": "a fallback that this cluster can run (Kubernetes 1.36 and later)",
	} {
		if err := tryUpgrade(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("upgrade to %s: %v, want %q", value, err, want)
		}
	}
	// auto, the default, which the first installation rendered too.
	if manifest, err := shared.Helm(t.Context(), "get", "manifest", stack.Release, "--namespace", stack.Namespace); err != nil || strings.Contains(manifest, "kind: MutatingAdmissionPolicy") {
		t.Errorf("the release has a MutatingAdmissionPolicy, or %v", err)
	}
	untrusted, trusted := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=trusted")
	webhookDown(t)
	eventually(t, func() error { return fallsBack(t, untrusted, newPod(), "") }) // as above
	_, err = try(t, untrusted, newPod())
	refusedBy(t, "backstop", err, "names none")
	_, err = try(t, trusted, newPod(labelled(trustLabel, "untrusted")))
	refusedBy(t, "backstop", err, "names none")
	if got := create(t, untrusted, newPod(class("kata-fc"))); classOf(got) != "kata-fc" || got.Annotations[catalog.AnnotationFallback] != "" {
		t.Errorf("a pod that asks for kata-fc gets %q, annotations %v", classOf(got), got.Annotations)
	}
	if got := create(t, trusted, newPod()); classOf(got) != "" {
		t.Errorf("a trusted pod gets class %s", classOf(got))
	}
}

// fallsBack returns an error unless the pod, which names no class, is given that class, or is
// refused where there is no fallback.
func fallsBack(t *testing.T, namespace string, pod *corev1.Pod, want string) error {
	t.Helper()
	got, err := try(t, namespace, pod)
	if !canFallBack(shared.Release) {
		if err == nil || !strings.Contains(err.Error(), "names none") {
			return fmt.Errorf("class %q, error %w; want a refusal by the backstop", classOf(got), err)
		}
		return nil
	}
	if err == nil && classOf(got) != want {
		return fmt.Errorf("class %q, want %s", classOf(got), want)
	}
	return err
}

// TestFallbackLeavesOthersAlone: what it may not touch is refused by the backstop where it
// must be, and let through where it may.
func TestFallbackLeavesOthersAlone(t *testing.T) {
	untrusted, warn := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=untrusted", "mode=warn")
	audit, unlabelled := newNamespace(t, "mode=audit"), newNamespace(t)
	webhookDown(t)
	_, err := try(t, untrusted, newPod(ownedBy("DaemonSet")))
	refusedBy(t, "backstop", err, "names none")
	for _, namespace := range []string{warn, audit, unlabelled, metav1.NamespaceSystem, stack.Namespace} {
		got, err := try(t, namespace, newPod(hostNetwork, privileged))
		if err != nil || classOf(got) != "" {
			t.Errorf("namespace %s: class %v, error %v; want the pod untouched", namespace, got.Spec.RuntimeClassName, err)
		}
	}
	// Not mirror pods, which nodes alone announce.
	const node = "system:node:crun-1"
	kubelet, err := shared.AddUser(node, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	bind(t, node, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}})
	static := newPod(annotated(corev1.MirrorPodAnnotationKey, "x"), onNode("crun-1"), hostNetwork)
	static.Name, static.GenerateName = "static", ""
	static.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "crun-1", UID: nodeUID(t, "crun-1"), Controller: ptr.To(true)}}
	eventually(t, func() error { // RBAC is a moment behind
		_, err := as(t, kubelet).CoreV1().Pods(untrusted).Create(t.Context(), static, dryRun)
		return err
	})
	class("gvisor")(static) // with a fallback it has one anyway
	_, err = try(t, untrusted, static)
	refusedBy(t, "backstop", err, "spec.hostNetwork")
}
