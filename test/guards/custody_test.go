package guards

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// labels changes labels of a namespace by a dry run, through a subresource if one is
// given. A nil value removes the label.
func labels(t *testing.T, c *kubernetes.Clientset, namespace string, set map[string]any, subresources ...string) error {
	t.Helper()
	full := map[string]any{}
	for key, value := range set {
		full[catalog.Prefix+key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": full}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
	return err
}

// settled waits until RBAC knows a new user.
func settled(t *testing.T, c *kubernetes.Clientset) {
	t.Helper()
	eventually(t, func() error { return labels(t, c, "default", map[string]any{"a": "b"}) })
}

func TestCustody(t *testing.T) {
	editor := user(t, "editor", namespaceEditor)
	untrusted, trusted := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=trusted")
	unlabelled, warn := newNamespace(t), newNamespace(t, "trust=untrusted", "mode=warn")
	wildcardRole(t, "editor", untrusted)
	settled(t, editor)
	for name, test := range map[string]struct {
		namespace string
		set       map[string]any
		want      string // in the refusal; "" is let through
	}{
		"raise":                        {untrusted, map[string]any{"trust": "trusted"}, "from untrusted to trusted"},
		"raise from unlabelled":        {unlabelled, map[string]any{"trust": "trusted"}, "from untrusted to trusted"},
		"raise in mode warn":           {warn, map[string]any{"trust": "trusted"}, "from untrusted to trusted"},
		"warn":                         {untrusted, map[string]any{"mode": "warn"}, "the mode of namespace " + untrusted},
		"audit, trusted":               {trusted, map[string]any{"mode": "audit"}, "the mode of namespace " + trusted},
		"remove the label":             {untrusted, map[string]any{"trust": nil}, "the mode of namespace " + untrusted},
		"lower and warn":               {trusted, map[string]any{"trust": "untrusted", "mode": "warn"}, "the mode of namespace"},
		"lower":                        {trusted, map[string]any{"trust": "untrusted"}, ""},
		"lower to nonsense":            {trusted, map[string]any{"trust": "nonsense"}, ""},
		"nonsense for the lowest":      {untrusted, map[string]any{"trust": "nonsense"}, ""},
		"label as the default":         {unlabelled, map[string]any{"trust": "untrusted"}, ""},
		"enforce":                      {warn, map[string]any{"mode": "enforce"}, ""},
		"an unknown mode is enforce":   {warn, map[string]any{"mode": "loud"}, ""},
		"audit where it warns":         {unlabelled, map[string]any{"mode": "audit"}, ""},
		"remove a mode that loosens":   {warn, map[string]any{"mode": nil}, ""},
		"the trust of a warned one":    {warn, map[string]any{"trust": nil}, ""},
		"another label of the product": {untrusted, map[string]any{"workload-profile": "general"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := labels(t, editor, test.namespace, test.set)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusedBy(t, "custody", err, test.want, "the verb grant on trust.runtimeclass-router.io, resourceName "+test.namespace, "ask the platform team")
		})
	}
}

// TestCustodyOfSubresources: labels travel with a namespace's status too.
func TestCustodyOfSubresources(t *testing.T) {
	editor := user(t, "subeditor", namespaceEditor)
	untrusted := newNamespace(t, "trust=untrusted")
	settled(t, editor)
	refusedBy(t, "custody", labels(t, editor, untrusted, map[string]any{"trust": "trusted"}, "status"), "from untrusted to trusted")
	object, err := editor.CoreV1().Namespaces().Get(t.Context(), untrusted, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Labels[trustLabel] = "trusted"
	_, err = editor.CoreV1().Namespaces().Finalize(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	refusedBy(t, "custody", err, "from untrusted to trusted")
	object.Labels[trustLabel] = "untrusted"
	if _, err = editor.CoreV1().Namespaces().Finalize(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("finalize without a change: %v", err)
	}
}

func TestCustodyOfNewNamespaces(t *testing.T) {
	editor := user(t, "creator", namespaceEditor)
	settled(t, editor)
	try := func(labels map[string]string) error {
		_, err := editor.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-", Labels: labels}}, dryRun)
		return err
	}
	refusedBy(t, "custody", try(map[string]string{trustLabel: "trusted"}), "from untrusted to trusted", "resourceName new-")
	for _, labels := range []map[string]string{nil, {trustLabel: "untrusted"}, {trustLabel: "nonsense"}, {modeLabel: "warn"}, {trustLabel: "untrusted", modeLabel: "warn"}} {
		if err := try(labels); err != nil {
			t.Errorf("labels %v: %v", labels, err)
		}
	}
}

func TestGrant(t *testing.T) {
	editor := user(t, "granted", namespaceEditor)
	mine, other := newNamespace(t, "trust=untrusted"), newNamespace(t, "trust=untrusted")
	settled(t, editor)
	raise := map[string]any{"trust": "trusted"}
	refusedBy(t, "custody", labels(t, editor, mine, raise))
	bind(t, "granted", rbacv1.PolicyRule{APIGroups: []string{"runtimeclass-router.io"}, Resources: []string{"trust"}, Verbs: []string{"grant"}, ResourceNames: []string{mine}})
	eventually(t, func() error { return labels(t, editor, mine, raise) })
	if err := labels(t, editor, mine, map[string]any{"mode": "warn"}); err != nil {
		t.Errorf("loosen the mode: %v", err)
	}
	refusedBy(t, "custody", labels(t, editor, other, raise), other)
	bindRole(t, "granted", stack.Release+"-grant")
	eventually(t, func() error { return labels(t, editor, other, raise) })
}

// TestCustodyWithTheWebhookDown: it needs nobody but the API server.
func TestCustodyWithTheWebhookDown(t *testing.T) {
	editor := user(t, "alone", namespaceEditor)
	untrusted := newNamespace(t, "trust=untrusted")
	settled(t, editor)
	webhookDown(t)
	refusedBy(t, "custody", labels(t, editor, untrusted, map[string]any{"trust": "trusted"}))
}

// TestCustodyFollowsTheDefault: in a cluster whose unlabelled namespaces are enforced, or
// trusted, other changes loosen.
func TestCustodyFollowsTheDefault(t *testing.T) {
	editor := user(t, "defaults", namespaceEditor)
	unlabelled, untrusted := newNamespace(t), newNamespace(t, "trust=untrusted")
	settled(t, editor)
	webhookDown(t) // which would write the parameters anew
	setParameters(t, map[string]any{backstop.KeyDefaultTrust: "trusted", backstop.KeyDefaultMode: "enforce"})
	eventually(t, func() error {
		err := labels(t, editor, unlabelled, map[string]any{"mode": "warn"})
		if err == nil {
			return fmt.Errorf("mode warn is let through")
		}
		refusedBy(t, "custody", err, "from enforce")
		return nil
	})
	refusedBy(t, "custody", labels(t, editor, untrusted, map[string]any{"trust": nil}), "from untrusted to trusted")
	if err := labels(t, editor, unlabelled, map[string]any{"trust": "trusted"}); err != nil {
		t.Errorf("the default, said aloud: %v", err)
	}
}
