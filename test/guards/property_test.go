package guards

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// generated is how many pods the property is tried on.
const generated = 600

// features are what the generated pods are made of: all that the backstop judges, and
// what it must not care about.
var features = []trait{
	hostNetwork, hostPID, hostIPC, privileged, privilegedInit, bidirectional,
	hostPath("/var/log/app", "", true), hostPath("/var/log/app", "", false), hostPath("/var/log/app", corev1.HostPathSocket, true),
	hostPath("/dev/fuse", corev1.HostPathCharDev, true), hostPath("/proc/sys", "", true), hostPath("/", "", true),
	annotated("dev.gvisor.internal.x", "1"), annotated("dev.gvisor.spec.mount.cache", "1"), annotated("io.kubernetes.cri.untrusted-workload", "true"),
	annotated(catalog.AnnotationFallback, "gvisor"), annotated(catalog.AnnotationTrust, "trusted"), annotated(corev1.MirrorPodAnnotationKey, "x"),
	device("nvidia.com/gpu"), device("amd.com/gpu"), device("example.com/allowed"), device("example.com/other"), device("hugepages-2Mi"),
	onNode("crun-1"), onNode("gvisor-1"), onNode("kata-qemu-1"), onNode("nowhere"),
	labelled(trustLabel, "trusted"), labelled(trustLabel, "untrusted"), labelled(trustLabel, "nonsense"),
	labelled(catalog.LabelProfile, "syscall-heavy"), labelled(catalog.LabelProfile, "kernel-features"),
	ownedBy("DaemonSet"), ownedBy("ReplicaSet"),
	func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{poolLabel: "kata-clh"} },
}

var askedClasses = []string{"", "", "crun", "plain", "gvisor", "kata-fc", "kata-qemu"}

func generate(random *rand.Rand) *corev1.Pod {
	pod := newPod()
	if name := askedClasses[random.IntN(len(askedClasses))]; name != "" {
		class(name)(pod)
	}
	for range random.IntN(3) {
		features[random.IntN(len(features))](pod)
	}
	// A volume and its mount of one name each.
	if n := len(pod.Spec.Volumes); n > 1 {
		pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = pod.Spec.Volumes[:1], pod.Spec.Containers[0].VolumeMounts[:1]
	}
	if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" && pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "gvisor-1"
	}
	return pod
}

// TestBackstopAgreesWithTheWebhook: what the webhook admits the backstop admits, and what
// the webhook refuses to every class the backstop refuses while the webhook is down.
func TestBackstopAgreesWithTheWebhook(t *testing.T) {
	const seed = 20
	random := rand.New(rand.NewPCG(seed, seed))
	var places []string
	for _, labels := range [][]string{{"trust=untrusted"}, {"trust=trusted"}, {"trust=nonsense"}, {"trust=untrusted", "mode=warn"}, nil} {
		places = append(places, newNamespace(t, labels...))
	}
	type refused struct {
		namespace string
		pod       *corev1.Pod
		err       error
	}
	var denied []refused
	admitted := 0
	for range generated {
		pod, namespace := generate(random), places[random.IntN(len(places))]
		got, err := try(t, namespace, pod)
		switch {
		case err == nil:
			admitted++
			if _, there := got.Annotations[catalog.AnnotationFallback]; there && namespace != places[3] && namespace != places[4] {
				t.Errorf("the annotation of the fallback stays\n%s", shown(pod))
			}
		case strings.Contains(err.Error(), "pods.runtimeclass-router.io"):
			denied = append(denied, refused{namespace, pod, err})
		case strings.Contains(err.Error(), "-backstop"), strings.Contains(err.Error(), "pods-final"):
			t.Errorf("the webhook admits, and then: %v\n%s", err, shown(pod))
		}
	}
	if admitted < generated/10 || len(denied) < generated/10 {
		t.Fatalf("%d pods are admitted and %d denied: that tells nothing", admitted, len(denied))
	}
	webhookDown(t)
	for _, r := range denied {
		if _, err := try(t, r.namespace, r.pod); err == nil && !harmless(r.pod) {
			t.Errorf("the backstop admits what the webhook denies: %v\n%s", r.err, shown(r.pod))
		}
	}
	t.Logf("%d admitted, %d denied", admitted, len(denied))
}

// harmless are pods that the webhook denies because they would not run, and not because
// of what they could reach.
func harmless(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}

func shown(pod *corev1.Pod) string {
	raw, err := json.Marshal(pod)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
