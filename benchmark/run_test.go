package benchmark

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// step is what a node does with a pod some time after the one before.
type step struct {
	after  time.Duration
	status corev1.PodStatus
}

// node plays the kubelets of a cluster of the test's own, in a bubble whose clock stands
// still while anybody works: what it takes for a step is what is measured.
type node struct {
	*fake.Clientset
	steps func(*corev1.Pod) []step

	mu        sync.Mutex
	now, most int // pods that exist
	names     []string
}

func newNode(ctx context.Context, t *testing.T, steps func(*corev1.Pod) []step) *node {
	t.Helper()
	n := &node{Clientset: fake.NewClientset(), steps: steps}
	n.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		if len(create.CreateOptions.DryRun) > 0 {
			return true, create.Object, nil // the tracker knows no dry run
		}
		n.count(1, create.Object.(*corev1.Pod).Name)
		return false, nil, nil
	})
	n.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		n.count(-1, "")
		return false, nil, nil
	})
	watch, err := n.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer watch.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watch.ResultChan():
				if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == "ADDED" {
					go n.run(ctx, pod.DeepCopy())
				}
			}
		}
	}()
	return n
}

func (n *node) run(ctx context.Context, pod *corev1.Pod) {
	pod.Spec.NodeName = "node-1"
	for _, s := range n.steps(pod) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.after):
		}
		s.status.DeepCopyInto(&pod.Status)
		if _, err := n.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return // it is deleted
		}
	}
}

// refuseFirstDeletion makes the API server refuse to delete a pod until it is asked again,
// and returns whose deletion was refused.
func (n *node) refuseFirstDeletion() map[string]bool {
	refused := map[string]bool{}
	n.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		name := action.(clienttesting.DeleteAction).GetName()
		first := !refused[name]
		refused[name] = true
		return first, nil, errors.New("later")
	})
	return refused
}

func (n *node) count(by int, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now += by
	n.most = max(n.most, n.now)
	if name != "" {
		n.names = append(n.names, name)
	}
}

// left are the pods that the API server still has.
func (n *node) left(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := n.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func inState(phase corev1.PodPhase, state corev1.ContainerState) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "sidecar", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 9}}},
		{Name: container, State: state},
	}}
}

func isRunning() corev1.PodStatus {
	return inState(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

func hasEnded(code int32, message string) corev1.PodStatus {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	return inState(phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Ended", Message: message}})
}

func isWaiting(reason, message string) corev1.PodStatus {
	return inState(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

// well is a pod that does what it should. One of class slow takes twice as long.
func well(pod *corev1.Pod) []step {
	by := time.Duration(1)
	message := "10.00 12.00"
	if ptr.Deref(pod.Spec.RuntimeClassName, "") == "slow" {
		by, message = 2, "10.00 14.00"
	}
	return []step{
		{0, isWaiting("ContainerCreating", "")},
		{by * 500 * time.Millisecond, isRunning()},
		{by * time.Second, isRunning()}, // again: it is ready, say
		{by * time.Second, hasEnded(0, message)},
	}
}

func TestRunMeasures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(ctx, t, well)
		o := valid()
		o.Pods, o.Runs, o.Parallel = 4, 2, 3
		p := planOf(t, o)
		var told []int
		runner := &Runner{Client: n, Progress: func(done int) { told = append(told, done) }}
		if refused := runner.Check(ctx, p); len(refused) > 0 {
			t.Error(refused)
		}
		results, err := runner.Run(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if len(results.Measurements) != p.Total() || len(results.GivenUp) > 0 {
			t.Errorf("%d of %d pods measured, given up: %v", len(results.Measurements), p.Total(), results.GivenUp)
		}
		for i := range results.Measurements {
			m := &results.Measurements[i]
			by := map[string]time.Duration{"fast": 1, "slow": 2}[m.Class]
			got := [3]time.Duration{m.Running, m.Done, m.Elapsed}
			if want := [3]time.Duration{by * 500 * time.Millisecond, by * 2500 * time.Millisecond, by * 2 * time.Second}; got != want || m.Err != nil || m.Node != "node-1" {
				t.Errorf("%s of class %s on %q: %v %v, want %v", m.Pod, m.Class, m.Node, got, m.Err, want)
			}
		}
		if n.most != 3 {
			t.Errorf("%d pods at once, want 3", n.most)
		}
		if len(told) != p.Total() || told[len(told)-1] != p.Total() {
			t.Errorf("progress: %v", told)
		}
		if left := n.left(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Each pod of a class fails in one way; the other class is measured all the same.
func TestRunSaysWhyPodsFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"exit code":         {[]step{{time.Second, hasEnded(2, "no such file")}}, "exit code 2 (Ended: no such file)"},
		"no uptimes":        {[]step{{time.Second, hasEnded(0, "")}}, `termination message "": want the uptimes before and after`},
		"never starts":      {[]step{{time.Second, isWaiting("CreateContainerError", "no runtime for handler")}}, "not done in 10s: CreateContainerError: no runtime for handler"},
		"never ends":        {[]step{{time.Second, isRunning()}}, "not done in 10s: its container runs"},
		"nothing is heard":  {nil, "not done in 10s: phase unknown"},
		"not scheduled":     {[]step{{0, unscheduled()}}, "not done in 10s: Unschedulable: no node"},
		"refused by a node": {[]step{{0, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeAffinity", Message: "not mine"}}}, "the pod ended without having run: NodeAffinity: not mine"},
		"evicted":           {[]step{{0, evicted()}}, "Evicted: low on memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := newNode(ctx, t, func(pod *corev1.Pod) []step {
					if *pod.Spec.RuntimeClassName == "fast" {
						return well(pod)
					}
					return test.steps
				})
				p := planOf(t, valid())
				results, err := (&Runner{Client: n}).Run(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				want := "given up after 1 of 1 pods failed: " + test.want
				if got := results.GivenUp["slow"]; got == nil || got.Error() != want {
					t.Errorf("slow: %v\nwant %s", got, want)
				}
				if results.GivenUp["fast"] != nil {
					t.Error(results.GivenUp["fast"])
				}
				if left := n.left(t); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

func unscheduled() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node"},
	}}
}

func evicted() corev1.PodStatus {
	s := hasEnded(137, "")
	s.Reason, s.Message = "Evicted", "low on memory"
	return s
}

// A class may lose some pods. Its third failure is its last.
func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := 0
		var mu sync.Mutex
		n := newNode(ctx, t, func(pod *corev1.Pod) []step {
			mu.Lock()
			defer mu.Unlock()
			if seen++; seen > 2 && seen != 4 {
				return []step{{time.Second, hasEnded(1, "")}}
			}
			return well(pod)
		})
		o := valid()
		o.Classes, o.Warmup, o.Pods, o.Runs, o.Parallel = []string{"fast"}, 0, 20, 0, 1
		results, err := (&Runner{Client: n}).Run(ctx, planOf(t, o))
		if err != nil {
			t.Fatal(err)
		}
		want := "given up after 3 of 6 pods failed: exit code 1 (Ended)"
		if got := results.GivenUp["fast"]; got == nil || got.Error() != want || len(results.Measurements) != 6 {
			t.Errorf("%d pods, %v", len(results.Measurements), got)
		}
	})
}

// A pod that another class was put on is not measured, and not left.
func TestRunDoesNotMeasureAnotherClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(ctx, t, well)
		n.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod); *pod.Spec.RuntimeClassName == "fast" {
				pod.Spec.RuntimeClassName = ptr.To("slow")
			}
			return false, nil, nil
		})
		p := planOf(t, valid())
		runner := &Runner{Client: n}
		refused := runner.Check(ctx, p)
		var replaced *ReplacedError
		if !errors.As(refused["fast"], &replaced) || *replaced != (ReplacedError{"fast", "slow"}) || refused["slow"] != nil {
			t.Errorf("the check says %v", refused)
		}
		results, err := runner.Run(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.As(results.GivenUp["fast"], &replaced) {
			t.Errorf("given up: %v", results.GivenUp)
		}
		for _, m := range results.Measurements {
			if m.Class == "fast" && m.Err == nil {
				t.Errorf("%s is measured", m.Pod)
			}
		}
		if left := n.left(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(ctx, t, well)
		n.refuseFirstDeletion()
		stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "bench", Labels: map[string]string{ManagedByLabel: ManagedBy}}}
		if _, err := n.CoreV1().Pods("bench").Create(ctx, stranger, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		runner := &Runner{Client: n}
		if others, err := runner.Others(ctx, planOf(t, valid())); others != 1 || err != nil {
			t.Errorf("%d pods of others, %v", others, err)
		}
		interrupted, interrupt := context.WithCancelCause(ctx)
		time.AfterFunc(3*time.Second, func() { interrupt(errors.New("interrupt signal received")) })
		began := time.Now()
		results, err := runner.Run(interrupted, planOf(t, valid()))
		if results != nil || err == nil || !strings.Contains(err.Error(), "interrupted after ") || !strings.HasSuffix(err.Error(), "interrupt signal received") {
			t.Errorf("%v %v", results, err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it ended after %s", took)
		}
		if left := n.left(t); len(left) != 1 || left[0].Name != "stranger" {
			t.Errorf("left: %v", left)
		}
	})
}

// A pod whose deletion failed is deleted in the end.
func TestSweepMakesUpForADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(ctx, t, well)
		refused := n.refuseFirstDeletion()
		p := planOf(t, valid())
		if results, err := (&Runner{Client: n}).Run(ctx, p); err != nil || len(results.Measurements) != p.Total() {
			t.Errorf("%v %v", results, err)
		}
		if left := n.left(t); len(refused) != p.Total() || len(left) > 0 {
			t.Errorf("%d deletions refused, left: %v", len(refused), left)
		}
	})
}

// What the sweep cannot delete it names, and how to.
func TestSweepNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verb string
		want []string
	}{
		"delete refused": {"delete", []string{"delete pod benchmark-run-", "deny"}},
		"list refused":   {"list", []string{"list pods: deny"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := newNode(ctx, t, well)
				var ended sync.Once
				var refusing atomic.Bool
				n.PrependReactor(test.verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return refusing.Load(), nil, errors.New("deny")
				})
				runner := &Runner{Client: n, Progress: func(int) { ended.Do(func() { refusing.Store(true) }) }}
				o := valid()
				o.Classes, o.Warmup, o.Pods, o.Runs, o.Parallel = []string{"fast"}, 0, 2, 0, 1
				results, err := runner.Run(ctx, planOf(t, o))
				if results == nil || err == nil {
					t.Fatalf("%v %v: want results and an error", results, err)
				}
				for _, want := range append(test.want, "kubectl delete pods --namespace bench --selector app.kubernetes.io/instance=run,app.kubernetes.io/managed-by=runtimeclass-router-bench") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v\nlacks %s", err, want)
					}
				}
			})
		})
	}
}

// Without the right to watch it says so.
func TestRunWithoutRights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(ctx, t, well)
		for _, verb := range []string{"list", "watch"} {
			n.PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("deny " + verb) })
		}
		n.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(nil, errors.New("deny watch")))
		_, err := (&Runner{Client: n}).Run(ctx, planOf(t, valid()))
		if err == nil || !strings.Contains(err.Error(), "watch pods in namespace bench: no answer in 40s") || !strings.Contains(err.Error(), "deny") {
			t.Error(err)
		}
		if diff := cmp.Diff([]string(nil), n.names); diff != "" {
			t.Errorf("pods were created: %s", diff)
		}
	})
}
