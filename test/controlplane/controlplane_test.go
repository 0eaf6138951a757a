package controlplane_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func TestControlPlane(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Progress:          t.Output(),
		Scheduler:         true,
		ControllerManager: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
		if left := commandsNaming(t, cp.Dir); len(left) > 0 {
			t.Errorf("left running after Stop: %q", left)
		}
		if _, err := os.Stat(cp.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("scratch folder %s after Stop: %v, want it removed", cp.Dir, err)
		}
	})
	// A check of the check: it would be worthless if it did not see them now.
	if running := commandsNaming(t, cp.Dir); len(running) < 4 {
		t.Errorf("running: %q, want four programs", running)
	}
	admin, err := client.New(cp.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("scheduler binds a pod where its class says", func(t *testing.T) { testSchedule(t, admin) })
	t.Run("a user without roles is refused", func(t *testing.T) { testUser(t, cp) })
	t.Run("kubectl and helm", func(t *testing.T) { testCommands(t, cp) })
	t.Run("the API server stops and comes back", func(t *testing.T) { testRestart(t, cp, admin) })
}

func testRestart(t *testing.T, cp *controlplane.ControlPlane, admin client.Client) {
	namespaces := func() (int, error) {
		list := &corev1.NamespaceList{}
		err := admin.List(t.Context(), list)
		return len(list.Items), err
	}
	before, err := namespaces()
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces(); err == nil {
		t.Error("it answers after it was stopped")
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := namespaces(); after != before || err != nil {
		t.Errorf("%d namespaces, and %d when it is back: %v", before, after, err)
	}
}

func testSchedule(t *testing.T, c client.Client) {
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "schedule"}}
	if err := controlplane.CreateNamespace(ctx, c, namespace); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []string{"plain", "sandbox"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: map[string]string{"pool": pool}}}
		node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: pool}}
		if err := controlplane.CreateNode(ctx, c, node); err != nil {
			t.Fatal(err)
		}
	}
	class := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"},
		Handler:    "sandbox",
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "sandbox"}},
	}
	if err := c.Create(ctx, class); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "pod"},
		Spec: corev1.PodSpec{
			RuntimeClassName: &class.Name,
			Containers:       []corev1.Container{{Name: "main", Image: "example.invalid/image"}},
		},
	}
	if err := c.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return pod.Spec.NodeName != "", c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	})
	if err != nil {
		t.Fatalf("pod not bound: %v; conditions %+v", err, pod.Status.Conditions)
	}
	if pod.Spec.NodeName != "sandbox" {
		t.Errorf("pod bound to node %q, want sandbox", pod.Spec.NodeName)
	}
	if pod.Spec.ServiceAccountName != "default" {
		t.Errorf("pod has ServiceAccount %q, want default", pod.Spec.ServiceAccountName)
	}
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: "sandbox"}, node); err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("node has taints %v, want none", node.Spec.Taints)
	}
	if handlers := node.Status.RuntimeHandlers; len(handlers) != 1 || handlers[0].Name != "sandbox" {
		t.Errorf("node has runtime handlers %v, want sandbox", handlers)
	}
}

func testUser(t *testing.T, cp *controlplane.ControlPlane) {
	config, err := cp.AddUser("alice", "developers")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("list pods as alice: %v, want Forbidden", err)
	}
	// A user of the administrator's name must not get at the administrator's file.
	path, err := cp.AddUserKubeconfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	who, err := cp.Kubectl(t.Context(), "auth", "whoami", "--kubeconfig", path, "-o", "jsonpath={.status.userInfo}")
	if err != nil || !strings.Contains(who, `"username":"admin"`) || strings.Contains(who, "system:masters") {
		t.Errorf("whoami by kubeconfig %s: %q, %v", path, who, err)
	}
	if path == cp.KubeconfigPath {
		t.Errorf("kubeconfig of the new user is the administrator's, %s", path)
	}
}

func testCommands(t *testing.T, cp *controlplane.ControlPlane) {
	ctx := t.Context()
	version, err := cp.Kubectl(ctx, "version")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Client Version: " + controlplane.Newest().Version, "Server Version: " + cp.Release.Version} {
		if !strings.Contains(version, want+"\n") {
			t.Errorf("kubectl version: %q, want %s", version, want)
		}
	}
	manifest := strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"piped"}}`)
	if out, err := cp.KubectlInput(ctx, manifest, "apply", "-f", "-"); err != nil || !strings.Contains(out, "created") {
		t.Errorf("kubectl apply: %q, %v", out, err)
	}
	if _, err := cp.Kubectl(ctx, "get", "configmap", "absent"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("kubectl get of what is not there: %v, want NotFound", err)
	}
	if out, err := cp.Helm(ctx, "version", "--short"); err != nil || !strings.Contains(out, controlplane.HelmVersion) {
		t.Errorf("helm version: %q, %v", out, err)
	}
	if _, err := cp.Helm(ctx, "list", "--all-namespaces"); err != nil {
		t.Error(err)
	}
}

func TestStartReportsWhatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		Progress:           t.Output(),
		Dir:                dir,
		ConfigureAPIServer: func(flags *envtest.Arguments) { flags.Set("feature-gates", "NoSuchGate=true") },
	})
	if err == nil || !strings.Contains(err.Error(), "start kube-apiserver") || !strings.Contains(err.Error(), "NoSuchGate") {
		t.Errorf("Start: %v, want it to name the program and quote its log", err)
	}
	if left := commandsNaming(t, dir); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

func TestStartRefusesUsedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/precious", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := controlplane.Start(t.Context(), controlplane.Options{Progress: t.Output(), Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("Start: %v, want a refusal of the folder", err)
	}
}
