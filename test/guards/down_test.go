package guards

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestBackstopWithoutTheFallback: nothing is left but to refuse.
func TestBackstopWithoutTheFallback(t *testing.T) {
	untrusted, trusted := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=trusted")
	unknown := newNamespace(t, "trust=trutsed")
	webhookDown(t)
	// Not by taking the binding away: see TestParametersAreFollowedAfterTheFallbackWasOff.
	setParameters(t, map[string]any{backstop.KeyFallback: ""})
	eventually(t, func() error {
		_, err := try(t, untrusted, newPod())
		if err == nil {
			return fmt.Errorf("a pod without a class is let in")
		}
		refusedBy(t, "backstop", err, "gvisor, kata-clh, kata-fc, kata-qemu", "names none")
		return nil
	})
	_, err := try(t, untrusted, newPod(class("crun")))
	refusedBy(t, "backstop", err, "gvisor, kata-clh, kata-fc, kata-qemu", "names crun")
	_, err = try(t, unknown, newPod(class("crun")))
	refusedBy(t, "backstop", err, "of trust untrusted")
	_, err = try(t, trusted, newPod(labelled(trustLabel, "nonsense")))
	refusedBy(t, "backstop", err, "of trust untrusted")
	create(t, untrusted, newPod(class("gvisor")))
	create(t, trusted, newPod())
	create(t, trusted, newPod(hostNetwork, privileged, onNode("crun-1")))
}

// TestBackstopRefusesWhatOpensTheHost under a class that isolates.
func TestBackstopRefusesWhatOpensTheHost(t *testing.T) {
	untrusted, unknown := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=")
	warn := newNamespace(t, "trust=untrusted", "mode=warn")
	webhookDown(t)
	for name, test := range map[string]struct {
		pod  trait
		want string
	}{
		"writable hostPath":       {hostPath("/var/lib/data", "", false), "spec.volumes host"},
		"read-only hostPath":      {hostPath("/var/lib/data", "", true), "spec.volumes host"},
		"allowed, but writable":   {hostPath("/var/log/app", "", false), "spec.volumes host"},
		"allowed, but a socket":   {hostPath("/var/log/app", corev1.HostPathSocket, true), "spec.volumes host"},
		"below an allowed path":   {hostPath("/var/log/app/x", "", true), "spec.volumes host"},
		"allowed, but of /proc":   {hostPath("/proc/sys", "", true), "spec.volumes host"},
		"hostNetwork":             {hostNetwork, "spec.hostNetwork"},
		"hostPID":                 {hostPID, "spec.hostPID"},
		"hostIPC":                 {hostIPC, "spec.hostIPC"},
		"privileged":              {privileged, "securityContext.privileged of main"},
		"privileged init":         {privilegedInit, "securityContext.privileged of init"},
		"gvisor annotation":       {annotated("dev.gvisor.internal.nvproxy", "true"), "dev.gvisor.internal.nvproxy"},
		"kata annotation":         {annotated("io.katacontainers.config.hypervisor.kernel_params", "agent.debug_console"), "io.katacontainers.config"},
		"untrusted-workload":      {annotated("io.kubernetes.cri.untrusted-workload", "false"), "io.kubernetes.cri.untrusted-workload"},
		"nodeName":                {onNode("crun-1"), "spec.nodeName"},
		"device":                  {device("smarter-devices/fuse"), "resources of main"},
		"GPU":                     {device("nvidia.com/gpu"), "resources of main"},
		"bidirectional":           {bidirectional, "securityContext.privileged of main"},
		"privileged in kata-clh":  {func(p *corev1.Pod) { privileged(p); class("kata-clh")(p) }, "securityContext.privileged of main"},
		"bidirectional, softened": {func(p *corev1.Pod) { bidirectional(p); class("kata-qemu")(p) }, "mountPropagation Bidirectional of main"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := try(t, untrusted, newPod(class("gvisor"), test.pod))
			refusedBy(t, "backstop", err, test.want)
			_, err = try(t, unknown, newPod(class("gvisor"), test.pod))
			refusedBy(t, "backstop", err, test.want)
			if _, err = try(t, warn, newPod(class("gvisor"), test.pod)); err != nil {
				t.Errorf("mode warn: %v", err)
			}
		})
	}
	for name, pod := range map[string]trait{
		"allowed path":       hostPath("/var/log/app", "", true),
		"a node of the pool": onNode("gvisor-1"),
		"allowed annotation": annotated("dev.gvisor.spec.mount.cache", "tmpfs"),
		"allowed device":     device("example.com/allowed"),
		"privileged in qemu": func(p *corev1.Pod) { privileged(p); class("kata-qemu")(p) },
		"GPU in qemu":        func(p *corev1.Pod) { device("nvidia.com/gpu")(p); class("kata-qemu")(p) },
		"a like annotation":  annotated("example.com/dev.gvisor", "x"),
	} {
		if _, err := try(t, untrusted, newPod(class("gvisor"), pod)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBackstopJudgesUpdates: debug containers, and annotations that a runtime reads when
// the pod starts.
func TestBackstopJudgesUpdates(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	relabelled := newNamespace(t, "trust=trusted")
	webhookDown(t)
	pods := clients.CoreV1().Pods(untrusted)
	pod := create(t, untrusted, newPod(class("gvisor"), hostPath("/var/log/app", "", true)))
	debug := func(change func(*corev1.EphemeralContainer)) error {
		changed := pod.DeepCopy()
		changed.ResourceVersion = "" // the scheduler writes too
		container := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/image"}}
		change(&container)
		changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers, container)
		_, err := clients.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(t.Context(), pod.Name, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	private := func(c *corev1.EphemeralContainer) {
		c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	}
	refusedBy(t, "backstop", debug(private), "securityContext.privileged of debug")
	refusedBy(t, "backstop", debug(func(c *corev1.EphemeralContainer) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "host", MountPath: "/host"}}
	}), "hostPath volumes host")
	if err := debug(func(c *corev1.EphemeralContainer) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "host", MountPath: "/host", ReadOnly: true}}
	}); err != nil {
		t.Errorf("an ordinary debug container: %v", err)
	}

	patch := func(metadata string) error {
		_, err := pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{})
		return err
	}
	refusedBy(t, "backstop", patch(`{"annotations":{"dev.gvisor.internal.seccomp":"false"}}`), "dev.gvisor.internal.seccomp")
	if err := patch(`{"annotations":{"example.com/a":"b"},"labels":{"` + trustLabel + `":"untrusted"}}`); err != nil {
		t.Errorf("an ordinary update: %v", err)
	}

	// A namespace that was labelled after its pods started can still be debugged.
	pod = create(t, relabelled, newPod(class("crun"), hostNetwork, privileged))
	relabel(t, relabelled, "untrusted")
	eventually(t, func() error {
		if err := debug(private); err == nil {
			return fmt.Errorf("a privileged debug container is let in")
		}
		return nil
	})
	if err := debug(func(*corev1.EphemeralContainer) {}); err != nil {
		t.Errorf("an ordinary debug container in a relabelled namespace: %v", err)
	}
}

// TestExceptionPassesTheBackstop, in its namespace, for its class and service account.
func TestExceptionPassesTheBackstop(t *testing.T) {
	excepted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", Labels: map[string]string{trustLabel: "untrusted"}}}
	if err := shared.CreateNamespace(t.Context(), excepted); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().ServiceAccounts("monitoring").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := newPod(class("crun"), account("agent"), hostNetwork, privileged, hostPath("/", "", false))
	if got, err := try(t, "monitoring", newPod(account("agent"))); err != nil || classOf(got) != "crun" {
		t.Errorf("webhook up: %v, want class crun of the exception", err)
	}
	if _, err := try(t, "monitoring", agent); err != nil {
		t.Errorf("webhook up: %v", err)
	}
	webhookDown(t)
	if _, err := try(t, "monitoring", agent); err != nil {
		t.Errorf("webhook down: %v", err)
	}
	_, err := try(t, "monitoring", newPod(class("crun")))
	refusedBy(t, "backstop", err, "names crun")
	_, err = try(t, "monitoring", newPod(class("plain"), account("agent")))
	refusedBy(t, "backstop", err, "names plain")
	_, err = try(t, "monitoring", newPod(account("agent")))
	refusedBy(t, "backstop", err, "names none")
	if err := fallsBack(t, "monitoring", newPod(), "gvisor"); err != nil {
		t.Errorf("another service account: %v", err)
	}
	expired := newNamespace(t, "trust=untrusted")
	_, err = try(t, expired, newPod(class("crun"), account("default")))
	refusedBy(t, "backstop", err, "names crun")
}

// TestIsolatingVirtualNodes: a pod that is bound to an isolating virtual node is left as it is, whoever judges it.
func TestIsolatingVirtualNodes(t *testing.T) {
	namespace := newNamespace(t, "trust=untrusted")
	selecting := func(labels map[string]string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = labels }
	}
	bound := map[string]func(*corev1.Pod){
		"by selector":  selecting(map[string]string{"type": "virtual-kubelet", "example.com/isolating": "true"}),
		"by scheduler": func(p *corev1.Pod) { p.Spec.SchedulerName = "fargate-scheduler" },
	}
	check := func(when string) {
		for name, trait := range bound {
			if got, err := try(t, namespace, newPod(trait)); err != nil || classOf(got) != "" {
				t.Errorf("%s, %s: class %q, %v", when, name, classOf(got), err)
			}
		}
	}
	check("webhook up")
	half := newPod(selecting(map[string]string{"type": "virtual-kubelet"}))
	if _, err := try(t, namespace, half); err == nil {
		t.Error("webhook up: a pod that is not bound to an isolating one was let in")
	}
	webhookDown(t)
	check("webhook down")
	if got, err := try(t, namespace, half); err == nil && classOf(got) != "gvisor" {
		t.Errorf("webhook down: class %q", classOf(got))
	}
}

// TestFailurePolicyFail without the fallback: exempt namespaces go on.
func TestFailurePolicyFail(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	failing(t)
	t.Cleanup(func() { ignoring(t) })
	webhookDown(t)
	eventually(t, func() error {
		_, err := try(t, untrusted, newPod(class("gvisor")))
		if err == nil {
			return errors.New("the pod is let in, want the failure of the webhook")
		}
		if !strings.Contains(err.Error(), "pods.runtimeclass-router.io") {
			return err
		}
		return nil
	})
	for _, namespace := range []string{metav1.NamespaceSystem, stack.Namespace} {
		if _, err := try(t, namespace, newPod()); err != nil {
			t.Errorf("namespace %s: %v", namespace, err)
		}
	}
}
