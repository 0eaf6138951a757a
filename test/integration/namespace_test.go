package integration

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// patience bounds every wait for the cluster to catch up. Nothing takes as long
// unless it never happens.
const patience = time.Minute

// namespace is a namespace of one test, or one that the cluster comes with.
type namespace struct {
	t    *testing.T
	name string
}

// newNamespace creates a namespace with labels, given as "key=value" without our
// prefix, and deletes it after the test.
func newNamespace(t *testing.T, labels ...string) *namespace {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		object.Labels[catalog.Prefix+key] = value
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := shared.CreateNamespace(ctx, object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended by now.
		if err := clients.CoreV1().Namespaces().Delete(context.Background(), object.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	return &namespace{t: t, name: object.Name}
}

// in is the namespace for a subtest, whose failures are its own.
func (n *namespace) in(t *testing.T) *namespace { return &namespace{t: t, name: n.name} }

func untrusted(t *testing.T) *namespace { t.Helper(); return newNamespace(t, "trust=untrusted") }

func trusted(t *testing.T) *namespace { t.Helper(); return newNamespace(t, "trust=trusted") }

// answer is what the API server answers to one call.
type answer struct {
	pod      *corev1.Pod // nil with an error
	err      error
	warnings []string
}

// create creates a pod.
func (n *namespace) create(pod *corev1.Pod) answer { return n.send(pod, metav1.CreateOptions{}) }

// dryRun asks what would become of a pod.
func (n *namespace) dryRun(pod *corev1.Pod) answer {
	return n.send(pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func (n *namespace) send(pod *corev1.Pod, options metav1.CreateOptions) answer {
	ctx, warnings := withRecorder(n.t.Context())
	created, err := clients.CoreV1().Pods(n.name).Create(ctx, pod, options)
	if err != nil {
		created = nil
	}
	return answer{pod: created, err: err, warnings: warnings()}
}

// admitted creates a pod that must be let in, and returns what is stored.
func (n *namespace) admitted(pod *corev1.Pod) *corev1.Pod {
	n.t.Helper()
	return n.create(pod).mustPod(n.t)
}

func (a answer) mustPod(t *testing.T) *corev1.Pod {
	t.Helper()
	if a.err != nil {
		t.Fatalf("the pod was refused: %v", a.err)
	}
	return a.pod
}

// eventually creates pods as dry runs until one gets the class.
func (n *namespace) eventually(pod *corev1.Pod, class string) answer {
	n.t.Helper()
	var last answer
	poll(n.t, func(context.Context) (bool, error) {
		last = n.dryRun(pod)
		return last.err == nil && classOf(last.pod) == class, nil
	}, func() string {
		if last.err != nil {
			return "want class " + class + ", the last pod was refused: " + last.err.Error()
		}
		return "want class " + class + ", the last pod got " + classOf(last.pod)
	})
	return last
}

// poll waits until done, at most for patience; state says how things stand if they
// never are.
func poll(t *testing.T, done wait.ConditionWithContextFunc, state func() string) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("%v: %s", err, state())
	}
}

// recordWarning gives each warning to the recorder of the call's context.
type recordWarning struct{}

type recorder struct {
	mu       sync.Mutex
	received []string
}

type recorderKey struct{}

func withRecorder(ctx context.Context) (_ context.Context, warnings func() []string) {
	r := &recorder{}
	return context.WithValue(ctx, recorderKey{}, r), func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.received
	}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (recordWarning) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	r, ok := ctx.Value(recorderKey{}).(*recorder)
	if !ok || code != 299 || !strings.HasPrefix(text, "runtimeclass-router:") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, text)
}
