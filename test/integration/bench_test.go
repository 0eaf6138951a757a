package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
)

// kubelet plays the kubelets of a namespace's pods until the test ends: what is bound to a
// node runs, ends if it may, and is let go of when it is deleted.
func (n *namespace) kubelet(ends bool) {
	n.t.Helper()
	pods := clients.CoreV1().Pods(n.name)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	n.t.Cleanup(func() {
		cancel()
		<-done
	})
	// An update that comes too late, since the pod has changed or is gone, is made for the
	// next look at it, or never.
	update := func(pod *corev1.Pod) {
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			n.t.Errorf("kubelet: %v", err)
		}
	}
	look := func(pod *corev1.Pod) {
		switch {
		case pod.Spec.NodeName == "":
		case pod.DeletionTimestamp != nil:
			if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				n.t.Errorf("kubelet: %v", err)
			}
		case len(pod.Status.ContainerStatuses) == 0:
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}}
			update(pod)
		case ends && pod.Status.Phase == corev1.PodRunning:
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "10.00 12.50\n"}}
			update(pod)
		}
	}
	go func() {
		defer close(done)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // the test waits, and says so if it is for ever
			}
			for i := range list.Items {
				look(&list.Items[i])
			}
		}
	}()
}

// mayBench makes a user with the rights in a namespace that the command's help names, and
// returns its kubeconfig.
func (n *namespace) mayBench() string {
	n.t.Helper()
	user := "bencher-" + n.name
	kubeconfig, err := shared.AddUserKubeconfig(user)
	if err != nil {
		n.t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "watch"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := clients.RbacV1().Roles(n.name).Create(n.t.Context(), role, metav1.CreateOptions{}); err != nil {
		n.t.Fatal(err)
	}
	if _, err := clients.RbacV1().RoleBindings(n.name).Create(n.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		n.t.Fatal(err)
	}
	return kubeconfig
}

// bench runs the command to its end.
func (n *namespace) bench(args ...string) (out, errOut string, status int) {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	command := shared.Command(n.t.Context(), append([]string{"bench", "-n", n.name}, args...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	var ended *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &ended) {
		n.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

func (n *namespace) pods() []corev1.Pod {
	n.t.Helper()
	list, err := clients.CoreV1().Pods(n.name).List(n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return list.Items
}

// Pods of two classes run in their pools and are measured, with no more rights than the
// help names, and nothing is left of them.
func TestBench(t *testing.T) {
	t.Parallel()
	n := trusted(t)
	kubeconfig := n.mayBench()
	n.kubelet(true)
	chart := filepath.Join(t.TempDir(), "chart.svg")
	var out, errOut string
	var status int
	poll(t, func(context.Context) (bool, error) { // until the rights are in force
		out, errOut, status = n.bench("--kubeconfig", kubeconfig, "--class", "crun,gvisor", "--pods", "3", "--runs", "2",
			"--parallel", "3", "--workload", "mine=true", "-o", "json", "--svg", chart)
		return !strings.Contains(errOut, "is forbidden"), nil
	}, func() string { return errOut })
	if status != 0 {
		t.Fatalf("status %d: %s", status, errOut)
	}
	var report benchmark.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	counts := map[string]string{}
	for _, m := range report.Measures {
		for _, f := range m.Classes {
			counts[m.Name+" "+f.Class] = fmt.Sprintf("%d of %d", f.Count, f.Of)
			if f.P50 <= 0 || f.P50 > f.P99 || f.Ratio <= 0 {
				t.Errorf("%s of %s: %+v", m.Name, f.Class, f)
			}
			if m.Name == "mine" && f.P50 != 2.5 {
				t.Errorf("mine of %s took %v s, want what the container said", f.Class, f.P50)
			}
		}
	}
	want := map[string]string{}
	for _, class := range []string{"crun", "gvisor"} {
		want["create to running "+class], want["create to done "+class] = "3 of 3", "3 of 3"
		want["syscall-heavy "+class], want["compute-heavy "+class], want["mine "+class] = "2 of 2", "2 of 2", "2 of 2"
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, pod := range report.Pods {
		if !strings.HasPrefix(pod.Node, pod.Class+"-") || pod.Error != "" {
			t.Errorf("pod %s of class %s ran on %q: %s", pod.Name, pod.Class, pod.Node, pod.Error)
		}
	}
	if left := n.pods(); len(left) > 0 {
		t.Errorf("left: %d pods", len(left))
	}
	if raw, err := os.ReadFile(chart); err != nil || !bytes.Contains(raw, []byte("gvisor")) {
		t.Errorf("the chart: %v\n%s", err, raw)
	}
}

// A tenant's pod does not run under crun, whatever it asks for: that is said, and nothing
// is created.
func TestBenchOfAClassThatIsReplaced(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	out, errOut, status := n.bench("--class", "crun,gvisor")
	want := "error: runtime class crun: a pod that asks for runtime class crun is admitted with gvisor: measure in a namespace that may run it\n"
	if status != 1 || out != "" || !strings.HasSuffix(errOut, want) {
		t.Errorf("status %d\n%s%s\nwant %s", status, out, errOut, want)
	}
	if pods := n.pods(); len(pods) > 0 {
		t.Errorf("%d pods were created", len(pods))
	}
	if _, errOut, status = n.bench("--class", "nowhere"); status != 1 || !strings.Contains(errOut, `runtime class nowhere: create pod: `) {
		t.Errorf("a class that is not there: status %d\n%s", status, errOut)
	}
}

// Interrupted while pods run, it deletes them before it ends.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := trusted(t)
			n.kubelet(false)
			var out, errOut bytes.Buffer
			command := shared.Command(t.Context(), "bench", "-n", n.name, "--class", "crun,gvisor")
			command.Stdout, command.Stderr = &out, &errOut
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			running := 0
			poll(t, func(context.Context) (bool, error) {
				running = 0
				for _, pod := range n.pods() {
					if pod.Status.Phase == corev1.PodRunning {
						running++
					}
				}
				return running == 2, nil // the pods that warm up, one of each class
			}, func() string { return fmt.Sprintf("%d pods run", running) })
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := command.Wait()
			if command.ProcessState.ExitCode() != 1 || !strings.Contains(errOut.String(), "error: interrupted after 2 of ") || out.Len() > 0 {
				t.Errorf("%v\n%s%s", err, &out, &errOut)
			}
			if left := n.pods(); len(left) > 0 {
				t.Errorf("left: %d pods", len(left))
			}
		})
	}
}

// Without --class it takes the classes that have a ready node, those that isolate least
// first, and says which have none.
func TestBenchFindsClasses(t *testing.T) {
	t.Parallel()
	n := trusted(t)
	out, errOut, status := n.bench("--dry-run")
	crun, gvisor, kata := strings.Index(out, "# crun, start"), strings.Index(out, "# gvisor, start"), strings.Index(out, "# kata-fc, start")
	if status != 0 || crun < 0 || crun > gvisor || gvisor > kata {
		t.Errorf("status %d: %s\n%s", status, errOut, out)
	}
	if want := "note: runtime class kata-clh has no ready node: not measured\n"; !strings.Contains(errOut, want) || strings.Contains(out, "# kata-clh") {
		t.Errorf("standard error lacks %q:\n%s", want, errOut)
	}
	if pods := n.pods(); len(pods) > 0 {
		t.Errorf("a dry run created %d pods", len(pods))
	}
}
