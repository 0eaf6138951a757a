package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// What the webhook wrote into a running pod, and the node that the scheduler bound it to,
// do not count against it; what its creator asked for does. That can be told on a real API
// server only, which notes what was sent before anything is added to it.
func TestPolicyDiffOfALiveCluster(t *testing.T) {
	t.Parallel()
	const user = "policy-differ"
	kubeconfig, err := shared.AddUserKubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	relabelled, other, raised := trusted(t), trusted(t), untrusted(t)
	relabelled.deploy("web", 2)
	other.deploy("web", 1)
	for name, ask := range map[string]trait{"asks": class("gvisor"), "bound": onNode("crun-1"), "host": hostNetwork} {
		relabelled.admitted(newPod(named(name), ask))
	}
	raised.admitted(newPod(named("replaced"), class("heavy")))
	raised.admitted(newPod(named("kept"), class("kata-qemu")))

	diff := func() (out []byte, errOut string, status int) {
		var stderr bytes.Buffer
		command := shared.Command(t.Context(), "policy", "diff", "--kubeconfig", kubeconfig, "-o", "json",
			"--set-label", relabelled.name+":"+catalog.LabelTrust+"=untrusted", "--set-label", raised.name+":"+catalog.LabelTrust+"=trusted")
		command.Stderr = &stderr
		out, err := command.Output()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return out, stderr.String(), command.ProcessState.ExitCode()
	}
	if out, errOut, status := diff(); status != 1 || len(out) > 0 || !strings.Contains(errOut, `cannot list resource`) {
		t.Errorf("without rights: status %d\n%s%s", status, out, errOut)
	}
	mayList(t, user)
	var out []byte
	var errOut string
	var status int
	poll(t, func(context.Context) (bool, error) {
		out, errOut, status = diff()
		return status != 1, nil
	}, func() string { return errOut })

	type change struct {
		Namespace, Owner, From, To string
		Pods                       int
		NewlyDenied                bool
	}
	var got struct{ Changes []change }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := map[change]bool{
		{relabelled.name, "Deployment/web", "crun", "gvisor", 2, false}: true,
		{relabelled.name, "Pod/bound", "crun", "DENIED", 1, true}:       true,
		{relabelled.name, "Pod/host", "crun", "DENIED", 1, true}:        true,
		{raised.name, "Pod/replaced", "gvisor", "crun", 1, false}:       true,
	}
	found := map[change]bool{}
	for _, c := range got.Changes {
		found[c] = true
	}
	if d := cmp.Diff(want, found); d != "" || status != 3 {
		t.Errorf("status %d (-want +got)\n%s", status, d)
	}
	if want := "note: pods whose class the webhook replaced count as asking for none"; !strings.Contains(errOut, want) {
		t.Errorf("standard error lacks %q: %s", want, errOut)
	}
}

// mayList gives a user the rights that the command's help names.
func mayList(t *testing.T, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "namespaces", "nodes"}, Verbs: []string{"list"}},
		{APIGroups: []string{"node.k8s.io"}, Resources: []string{"runtimeclasses"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := clients.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func named(name string) trait {
	return func(p *corev1.Pod) { p.GenerateName, p.Name = "", name }
}

func onNode(name string) trait { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

// deploy makes a Deployment, and returns when its pods are bound to nodes.
func (n *namespace) deploy(name string, replicas int) {
	n.t.Helper()
	labels := map[string]string{"example.com/app": name}
	template := newPod()
	_, err := clients.AppsV1().Deployments(n.name).Create(n.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	bound := 0
	poll(n.t, func(ctx context.Context) (bool, error) {
		pods, err := clients.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{LabelSelector: "example.com/app=" + name})
		if err != nil {
			return false, err
		}
		bound = 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		return bound == replicas, nil
	}, func() string { return "the Deployment's pods are not bound" })
}
