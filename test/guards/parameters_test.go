package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

func stored(t *testing.T) *corev1.ServiceAccount {
	t.Helper()
	account, err := clients.CoreV1().ServiceAccounts(stack.Namespace).Get(context.WithoutCancel(t.Context()), parameters, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// guardsData are the parameters that are stored.
func guardsData(t *testing.T) map[string]string {
	t.Helper()
	data := maps.Clone(stored(t).Annotations)
	maps.DeleteFunc(data, func(key, _ string) bool { return !strings.HasPrefix(key, "guards.") })
	return data
}

// setParameters changes keys of the parameters; nil removes one. The product puts them
// back when it is started again.
func setParameters(t *testing.T, data map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": data}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().ServiceAccounts(stack.Namespace).Patch(t.Context(), parameters, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// withoutParameters takes all of them away.
func withoutParameters(t *testing.T) {
	t.Helper()
	gone := map[string]any{}
	for key := range guardsData(t) {
		gone[key] = nil
	}
	setParameters(t, gone)
}

// TestParametersAreWritten with what the policies read.
func TestParametersAreWritten(t *testing.T) {
	want := map[string]string{
		backstop.KeyLevels: "trusted\nuntrusted", backstop.KeyOpenLevels: "trusted",
		backstop.KeyDefaultTrust: "untrusted", backstop.KeyDefaultMode: "warn",
		backstop.KeyClasses:  "untrusted/gvisor\nuntrusted/kata-clh\nuntrusted/kata-fc\nuntrusted/kata-qemu",
		backstop.KeyNodes:    "gvisor/gvisor-1\nkata-clh/kata-clh-1\nkata-fc/kata-fc-1\nkata-qemu/kata-qemu-1",
		backstop.KeyFallback: "gvisor", backstop.KeyExceptions: "monitoring/crun/agent",
		backstop.KeyPrivilegedClasses: "kata-qemu", backstop.KeyGPUClasses: "kata-qemu",
		backstop.KeyHostPaths: "/var/log/app", backstop.KeyDeviceResources: "example.com/allowed",
		backstop.KeyGPUResources: "amd.com/gpu\ngpu.intel.com/*\nhabana.ai/gaudi\nnvidia.com/*",
		backstop.KeyAnnotations:  "dev.gvisor.spec.mount.*",
		backstop.KeyVirtualNodes: "example.com/isolating=true,type=virtual-kubelet\nscheduler:fargate-scheduler",
	}
	eventually(t, func() error {
		if diff := cmp.Diff(want, guardsData(t)); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
	owners := stored(t).ManagedFields
	if !slices.ContainsFunc(owners, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "runtimeclass-router" }) {
		t.Errorf("managed fields %v", owners)
	}
}

func TestParametersFollowTheCluster(t *testing.T) {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "arrives"}, Handler: "kata-fc", Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{poolLabel: "arrives"}}}
	if _, err := clients.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	has := func(key, entry string) bool { return slices.Contains(strings.Split(guardsData(t)[key], "\n"), entry) }
	eventually(t, func() error {
		if !has(backstop.KeyClasses, "untrusted/arrives") {
			return fmt.Errorf("%v", guardsData(t))
		}
		return nil
	})
	if err := clients.NodeV1().RuntimeClasses().Delete(t.Context(), "arrives", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if has(backstop.KeyClasses, "untrusted/arrives") {
			return fmt.Errorf("%v", guardsData(t))
		}
		return nil
	})
}

// TestParametersAreFollowedAfterTheFallbackWasOff, and with it the last binding of its kind
// that has parameters (kubernetes/kubernetes#130887).
func TestParametersAreFollowedAfterTheFallbackWasOff(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	webhookDown(t)
	failing(t)
	time.Sleep(3 * time.Second) // the API server looks once a second
	ignoring(t)
	eventually(t, func() error { _, err := try(t, untrusted, newPod(class("kata-fc"))); return err })
	for _, fallback := range []string{"kata-fc", "kata-qemu"} {
		setParameters(t, map[string]any{backstop.KeyFallback: fallback})
		eventually(t, func() error { return fallsBack(t, untrusted, newPod(), fallback) })
	}
	setParameters(t, map[string]any{backstop.KeyClasses: "untrusted/gvisor"})
	eventually(t, func() error {
		if _, err := try(t, untrusted, newPod(class("kata-fc"))); err == nil {
			return fmt.Errorf("the backstop goes by classes that are gone")
		}
		return nil
	})
}

// TestUpgradeKeepsTheParameters: the chart renders them without data.
func TestUpgradeKeepsTheParameters(t *testing.T) {
	webhookDown(t) // which would write them again
	before := guardsData(t)
	upgrade(t, "log.level=1")
	t.Cleanup(func() { ignoring(t) })
	if diff := cmp.Diff(before, guardsData(t)); diff != "" || len(before) == 0 {
		t.Errorf("-before +after:\n%s", diff)
	}
	if stored(t).Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Error("the chart does not own the ServiceAccount")
	}
}

// TestWithoutParametersNobodyIsRefused, but for those who relabel namespaces.
func TestWithoutParametersNobodyIsRefused(t *testing.T) {
	editor := user(t, "early", namespaceEditor)
	untrusted, unlabelled := newNamespace(t, "trust=untrusted"), newNamespace(t)
	settled(t, editor)
	webhookDown(t)
	bad := newPod(class("crun"), hostNetwork, privileged)
	_, err := try(t, untrusted, bad)
	refusedBy(t, "backstop", err)
	withoutParameters(t)
	eventually(t, func() error {
		if _, err := try(t, untrusted, bad); err != nil {
			return fmt.Errorf("%w; with parameters %v", err, guardsData(t))
		}
		return nil
	})
	if got, err := try(t, untrusted, newPod()); err != nil || classOf(got) != "" {
		t.Errorf("class %v, error %v", got, err)
	}
	for _, set := range []map[string]any{{"trust": "trusted"}, {"trust": "untrusted"}, {"mode": "audit"}} {
		refusedBy(t, "custody", labels(t, editor, unlabelled, set), "before the parameters of the guards are written", "ask the platform team")
	}
	if err := labels(t, editor, untrusted, map[string]any{"workload-profile": "general"}); err != nil {
		t.Errorf("another label: %v", err)
	}
	if _, err := editor.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-"}}, dryRun); err != nil {
		t.Errorf("a namespace without labels: %v", err)
	}
	if err := clients.CoreV1().ServiceAccounts(stack.Namespace).Delete(t.Context(), parameters, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ignoring(t) }) // an upgrade puts it back, before the webhook is started again
	eventually(t, func() error { return labels(t, editor, unlabelled, map[string]any{"trust": "trusted"}) })
	if _, err := try(t, untrusted, bad); err != nil {
		t.Errorf("without the ServiceAccount: %v", err)
	}
}

// TestParametersArePutBack when somebody changes them while the product runs.
func TestParametersArePutBack(t *testing.T) {
	eventually(t, func() error {
		if guardsData(t)[backstop.KeyLevels] == "" {
			return fmt.Errorf("not written yet")
		}
		return nil
	})
	before := guardsData(t)
	setParameters(t, map[string]any{backstop.KeyOpenLevels: "trusted\nuntrusted"})
	eventually(t, func() error {
		if diff := cmp.Diff(before, guardsData(t)); diff != "" {
			return fmt.Errorf("-before +after:\n%s", diff)
		}
		return nil
	})
}

// TestPoliciesTypeCheck: the API server's controller finds what is evaluated too seldom
// for a test to find.
func TestPoliciesTypeCheck(t *testing.T) {
	for _, name := range []string{"backstop", "custody"} {
		eventually(t, func() error {
			policy, err := clients.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), stack.Release+"-"+name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
				return fmt.Errorf("%s is not checked yet", name)
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}
