package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A developer who has a Role in one namespace and nothing else is told what happened to a
// pod there, what could not be read, and what is assumed in its place.
func TestWhyWithARoleInOneNamespace(t *testing.T) {
	t.Parallel()
	const user = "why-developer"
	kubeconfig, err := shared.AddUserKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	n := untrusted(t)
	pod := n.admitted(newPod(named("web")))
	n.deploy("shop", 1)
	why := func(args ...string) (out, errOut string, status int) {
		var stderr bytes.Buffer
		command := shared.Command(t.Context(), append([]string{"why", "-n", n.name}, args...)...)
		command.Stderr = &stderr
		raw, err := command.Output()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return string(raw), stderr.String(), command.ProcessState.ExitCode()
	}
	developer := func(args ...string) (out, errOut string, status int) {
		return why(append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}

	if out, errOut, status := developer("web"); status != 1 || out != "" || !strings.Contains(errOut, `cannot get resource "pods"`) {
		t.Errorf("without rights: status %d\n%s%s", status, out, errOut)
	}
	const runs, asRecorded = "runs    under gvisor", "record  trust untrusted, policy revision "
	recorded := asRecorded + pod.Annotations["runtimeclass-router.io/policy-revision"]
	unread := map[string]string{
		"namespace":      "namespace " + n.name + " could not be read (it takes: get namespaces/" + n.name + "): it counts as without labels",
		"RuntimeClasses": "RuntimeClasses could not be read (it takes: list runtimeclasses.node.k8s.io): an example cluster stands in",
		"policy":         "the policy of release runtimeclass-router could not be read (it takes: get configmaps/runtimeclass-router-config",
		"exemptions":     "the webhook configuration of release runtimeclass-router could not be read",
	}
	expect := func(out string, assumed ...string) {
		t.Helper()
		for _, want := range []string{runs, recorded, "recorded in annotations, which whoever may write the pod may have written"} {
			if !strings.Contains(out, want) {
				t.Errorf("lacks %q:\n%s", want, out)
			}
		}
		for what, words := range unread {
			if strings.Contains(out, words) != strings.Contains(strings.Join(assumed, " "), what) {
				t.Errorf("%s, of which are assumed %v:\n%s", what, assumed, out)
			}
		}
	}

	grant(t, n.name, user, "pods", rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "deployments"}, Verbs: []string{"get"}})
	var out string
	poll(t, func(context.Context) (bool, error) {
		var status int
		out, _, status = developer("web")
		return status == 0, nil
	}, func() string { return out })
	expect(out, "namespace", "RuntimeClasses", "policy", "exemptions")

	grant(t, n.name, user, "namespace", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	poll(t, func(context.Context) (bool, error) {
		out, _, _ = developer("web")
		return strings.Contains(out, "read    namespace "+n.name+": of the cluster"), nil
	}, func() string { return out })
	expect(out, "RuntimeClasses", "policy", "exemptions")
	if !strings.Contains(out, "labels  namespace "+n.name+": runtimeclass-router.io/trust=untrusted") || !strings.Contains(out, "is recorded, and ") {
		t.Errorf("the namespace's label, or that another policy answers, is not said:\n%s", out)
	}

	listed, err := shared.Kubectl(t.Context(), "get", "runtimeclasses,nodes", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ = developer("web", "--cluster", file)
	expect(out, "policy", "exemptions")
	if out, errOut, status := developer("deploy/shop", "--cluster", file); status != 0 || !strings.Contains(out, "today   gvisor") {
		t.Errorf("a Deployment: status %d\n%s%s", status, out, errOut)
	}

	out, errOut, status := why("web")
	if status != 0 || strings.Contains(out, "assumed") || !strings.Contains(out, "policy  that of release runtimeclass-router") || !strings.Contains(out, "differs in nothing") {
		t.Errorf("an administrator: status %d\n%s%s", status, out, errOut)
	}
	expect(out)
}

// grant gives a user rights in one namespace.
func grant(t *testing.T, namespace, user, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := clients.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := clients.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
