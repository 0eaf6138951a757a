package guards

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func as(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// user returns the client of a new user that has the rules in the whole cluster.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) *kubernetes.Clientset {
	t.Helper()
	config, err := shared.AddUser(name)
	if err != nil {
		t.Fatal(err)
	}
	bind(t, name, rules...)
	return as(t, config)
}

// bind gives a user rules in the whole cluster, until the test is over.
func bind(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role, err := clients.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bindRole(t, name, role.Name)
	t.Cleanup(func() {
		if err := clients.RbacV1().ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func bindRole(t *testing.T, name, role string) {
	t.Helper()
	binding, err := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients.RbacV1().ClusterRoleBindings().Delete(context.Background(), binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// wildcardRole gives a user every right within one namespace.
func wildcardRole(t *testing.T, name, namespace string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	if _, err := clients.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := clients.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "everything"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// relabel sets the trust of a namespace, as an administrator.
func relabel(t *testing.T, namespace, trust string) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"` + trustLabel + `":"` + trust + `"}}}`)
	if _, err := clients.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func nodeUID(t *testing.T, name string) types.UID {
	t.Helper()
	node, err := clients.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.UID
}

// namespaceEditor may do with Namespace objects what it likes.
var namespaceEditor = rbacv1.PolicyRule{
	APIGroups: []string{corev1.GroupName},
	Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"},
	Verbs:     []string{"get", "create", "update", "patch"},
}
