package guards

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// patience bounds every wait for the cluster to catch up.
const patience = 90 * time.Second

// What all tests share, set before the first of them runs.
var (
	shared  *stack.Stack
	clients *kubernetes.Clientset // of an administrator
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (_ int, err error) {
	raw, err := os.ReadFile(filepath.Join("testdata", "values.yaml"))
	if err != nil {
		return 0, err
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return 0, err
	}
	release, err := controlplane.Chosen()
	if err != nil {
		return 0, err
	}
	if !canFallBack(release) {
		values["webhook"].(map[string]any)["failurePolicy"] = "Fail"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	shared, err = stack.Start(ctx, stack.Options{
		Progress: os.Stderr,
		Cluster:  []string{filepath.Join("testdata", "cluster.yaml")},
		Values:   values,
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopped := shared.Stop(); err == nil {
			err = stopped
		}
	}()
	quiet := rest.CopyConfig(shared.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	if clients, err = kubernetes.NewForConfig(quiet); err != nil {
		return 0, err
	}
	if !canFallBack(release) {
		if err := ignoreFailures(ctx); err != nil {
			return 0, err
		}
	}
	if err := live(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// live waits until the API server goes by the policies and the parameters: a policy is
// there a second after it is stored, and its parameters are the product's to write.
func live(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{trustLabel: "untrusted"}}}
	if err := shared.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	pod, err := clients.CoreV1().Pods(namespace.Name).Create(ctx, newPod(), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	editor, err := probeUser(ctx)
	if err != nil {
		return err
	}
	patched := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	var last error
	// The webhook hears of neither.
	for policy, attempt := range map[string]func(context.Context) error{
		"backstop": func(ctx context.Context) error {
			patch := `{"metadata":{"annotations":{"dev.gvisor.internal.x":"1"}}}`
			_, err := clients.CoreV1().Pods(namespace.Name).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), patched)
			return err
		},
		"custody": func(ctx context.Context) error {
			patch := `{"metadata":{"labels":{"` + trustLabel + `":"trusted"}}}`
			_, err := editor.CoreV1().Namespaces().Patch(ctx, namespace.Name, types.MergePatchType, []byte(patch), patched)
			return err
		},
	} {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			last = attempt(ctx)
			return last != nil && strings.Contains(last.Error(), "-"+policy) && !strings.Contains(last.Error(), "before the parameters"), nil
		})
		if err != nil {
			return fmt.Errorf("wait for the %s: %w (last answer: %w)", policy, err, last)
		}
	}
	return clients.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
}

// probeUser is a user who may edit namespaces and grant nothing.
func probeUser(ctx context.Context) (*kubernetes.Clientset, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Rules: []rbacv1.PolicyRule{namespaceEditor}}
	if _, err := clients.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "probe"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "probe"}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	config, err := shared.AddUser("probe")
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// webhookDown kills the webhook until the test is over.
func webhookDown(t *testing.T) {
	t.Helper()
	if err := shared.Router.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = shared.Router.Wait() // it ends with "signal: killed"
	before := guardsData(t)
	t.Cleanup(func() {
		if err := shared.Router.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		// It is ready before it has put back the parameters that the test has changed.
		eventually(t, func() error {
			if diff := cmp.Diff(before, guardsData(t)); diff != "" {
				return fmt.Errorf("parameters (-before +after):\n%s", diff)
			}
			return nil
		})
	})
}

// eventually waits until check returns nil.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
