package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// author writes policy for a router of its own, into a namespace of its own: it is not
// that of the release, where a broken ConfigMap is refused as it is applied.
type author struct {
	t         *testing.T
	router    *stack.Router
	pods      *namespace
	namespace string
}

// policyStatus is what of /statusz is tested.
type policyStatus struct {
	Policy struct {
		Revision, Mode string
		Errors         []string
	}
	Sources []struct {
		Kind, Name, State, ReadAt, Revision string
		Files                               int
		Errors                              []string
	}
	Catalog struct{ Revision string }
}

// newAuthor starts a router in a mode, with the good policy.
func newAuthor(t *testing.T, mode string) *author {
	t.Helper()
	a := &author{t: t, pods: newNamespace(t, "trust=untrusted"), namespace: newNamespace(t).name}
	a.grant()
	a.apply("policy", map[string]string{"custom.rego": goodPolicies[mode]})
	router, err := shared.NewRouter(t.Context(), a.namespace)
	if err != nil {
		t.Fatal(err)
	}
	a.router = router
	if err := router.Configure(func(config map[string]any) {
		config["policies"] = map[string]any{"mode": mode, "configMaps": map[string]any{"namespace": a.namespace}}
	}); err != nil {
		t.Fatal(err)
	}
	if err := router.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// in is the author for a subtest, whose failures are its own.
func (a *author) in(t *testing.T) *author {
	return &author{t: t, router: a.router, pods: a.pods.in(t), namespace: a.namespace}
}

// grant gives the chart's ServiceAccount the chart's Role here, and no more.
func (a *author) grant() {
	a.t.Helper()
	roles := clients.RbacV1()
	given, err := roles.Roles(stack.Namespace).Get(a.t.Context(), stack.Release, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: stack.Release}, Rules: given.Rules}
	if _, err := roles.Roles(a.namespace).Create(a.t.Context(), role, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: stack.Release},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: stack.Release},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: stack.Namespace, Name: stack.Release}},
	}
	if _, err := roles.RoleBindings(a.namespace).Create(a.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// apply writes a ConfigMap that carries policy.
func (a *author) apply(name string, files map[string]string) *corev1.ConfigMap {
	a.t.Helper()
	objects, object := clients.CoreV1().ConfigMaps(a.namespace), policyConfigMap(a.namespace, name, files)
	written, err := objects.Create(a.t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		written, err = objects.Update(a.t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return written
}

func (a *author) remove(name string) {
	a.t.Helper()
	if err := clients.CoreV1().ConfigMaps(a.namespace).Delete(a.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *author) statusText() string {
	a.t.Helper()
	text, err := a.router.Status(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return text
}

func (a *author) status() policyStatus {
	a.t.Helper()
	var s policyStatus
	if err := json.Unmarshal([]byte(a.statusText()), &s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

// dump is for a wait that ends in vain.
func (a *author) dump() string { return "status: " + a.statusText() }

// problems are all that /statusz says.
func (s *policyStatus) problems() []string {
	all := slices.Clone(s.Policy.Errors)
	for _, source := range s.Sources {
		all = append(all, source.Errors...)
	}
	return all
}

// route asks the router about a pod.
func (a *author) route() *admissionv1.AdmissionResponse {
	a.t.Helper()
	answer, err := post(a.t.Context(), a.router.HTTP, a.router.URL, reviewOf(a.t, a.pods, newPod(), "author"))
	if err != nil {
		a.t.Fatal(err)
	}
	return answer.response
}

// inForce waits until the good policy is, and nothing is wrong.
func (a *author) inForce() {
	a.t.Helper()
	poll(a.t, func(context.Context) (bool, error) {
		s := a.status()
		return len(s.problems()) == 0 && a.class() == "kata-qemu", nil
	}, a.dump)
}

func (a *author) class() string {
	a.t.Helper()
	response := a.route()
	if !response.Allowed {
		return "refused"
	}
	return classOf(patched(a.t, newPod(), response))
}

// refused waits until the router says, in /statusz and on the ConfigMap, that it is not
// loaded and why, and holds it to the last good policy.
func (a *author) refused(broken *corev1.ConfigMap, want string) {
	a.t.Helper()
	a.says(want)
	if got := a.class(); got != "kata-qemu" {
		a.t.Errorf("a pod got %q, which is not of the last good policy", got)
	}
	var notes []string
	poll(a.t, func(ctx context.Context) (bool, error) {
		events, err := clients.EventsV1().Events(a.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		notes = nil
		for _, event := range events.Items {
			if event.Regarding.Kind == "ConfigMap" && event.Regarding.UID == broken.UID && event.Reason == "PolicyRefused" && event.Type == corev1.EventTypeWarning {
				notes = append(notes, event.Note)
			}
		}
		return strings.Contains(strings.Join(notes, "\n"), want), nil
	}, func() string {
		return fmt.Sprintf("no Event on ConfigMap %s says %q, but %q", broken.Name, want, notes)
	})
}
