package informers

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// patience is for what a real API server does soon.
const patience = 30 * time.Second

// live is a cluster under informers that run, and what they have reported.
type live struct {
	client.Client
	*Informers
	config *rest.Config

	mu       sync.Mutex
	catalogs []*catalog.Catalog
	refuse   error // what the next call of changed returns
}

func (l *live) changed(_ context.Context, c *catalog.Catalog) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catalogs = append(l.catalogs, c)
	err := l.refuse
	l.refuse = nil
	return err
}

func (l *live) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.catalogs)
}

func (l *live) latest() *catalog.Catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.catalogs) == 0 {
		return catalog.Build(nil, nil)
	}
	return l.catalogs[len(l.catalogs)-1]
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// quiet waits until what has happened so far has been reported.
func (l *live) quiet() int {
	for {
		before := l.calls()
		time.Sleep(5 * settle)
		if after := l.calls(); after == before {
			return after
		}
	}
}

// TestInformers follows one cluster through its changes. The steps build on each other.
func TestInformers(t *testing.T) {
	t.Parallel()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	l := &live{config: cp.Config}
	if l.Client, err = client.New(cp.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if l.Informers, err = New(cp.Config, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	before := watchers()
	if _, err := l.Namespace(t.Context(), "default"); !errors.Is(err, ErrNotSynced) || l.Synced() {
		t.Errorf("before Run: synced %t, error %v, want ErrNotSynced", l.Synced(), err)
	}
	l.seed(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, l.changed) }()

	for _, step := range []struct {
		name string
		run  func(*live, *testing.T)
	}{
		{"the first catalog is complete", (*live).first},
		{"a heartbeat changes nothing", (*live).heartbeat},
		{"a node that turns NotReady changes the catalog", (*live).notReady},
		{"a deleted class changes the catalog", (*live).deleted},
		{"after an error the next change tries again", (*live).refused},
		{"a namespace comes from the cache", (*live).cached},
		{"a namespace that the cache lacks is read live", (*live).readLive},
		{"an unknown namespace is not found", (*live).unknownNamespace},
		{"Read sees the same", (*live).read},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(l, t) }) {
			return
		}
	}

	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end with its context")
	}
	// What Shutdown does not wait for has this long to notice that its channel is closed.
	var left []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if left = watchers(); len(left) <= len(before) {
			return
		}
	}
	t.Errorf("left running:\n%s", strings.Join(left, "\n\n"))
}

// watchers are the goroutines of informers, their queues and their watches. Those of
// the control plane, which watches its processes, are none.
func watchers() []string {
	buffer := make([]byte, 1<<22)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var found []string
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if strings.Contains(stack, "k8s.io/client-go/tools/cache") || strings.Contains(stack, "k8s.io/client-go/metadata") ||
			strings.Contains(stack, "k8s.io/apimachinery/pkg/watch") || strings.Contains(stack, "(*Informers).Run") {
			found = append(found, stack)
		}
	}
	return found
}

func (l *live) seed(t *testing.T) {
	t.Helper()
	for _, class := range []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"},
		{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata"},
	} {
		if err := l.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: "runsc"}}
	if err := controlplane.CreateNode(t.Context(), l, node); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "team", Labels: map[string]string{catalog.LabelTrust: "untrusted"}, Annotations: map[string]string{"note": "kept"},
	}}
	if err := l.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

func (l *live) first(t *testing.T) {
	eventually(t, "a first call of changed", func() bool { return l.calls() > 0 })
	l.mu.Lock()
	first := l.catalogs[0]
	l.mu.Unlock()
	if len(first.RuntimeClasses) != 2 || !first.RuntimeClass("gvisor").PoolReady || first.RuntimeClass("kata").PoolReady {
		t.Errorf("the first catalog is %+v", first.RuntimeClasses)
	}
	if !l.Synced() {
		t.Error("not synced")
	}
}

// updateNode writes the node's Ready condition and returns the version it then has.
func (l *live) updateNode(t *testing.T, edit func(*corev1.NodeCondition)) string {
	t.Helper()
	node := &corev1.Node{}
	if err := l.Get(t.Context(), client.ObjectKey{Name: "node"}, node); err != nil {
		t.Fatal(err)
	}
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			edit(&node.Status.Conditions[i])
		}
	}
	if err := l.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return node.ResourceVersion
}

func (l *live) heartbeat(t *testing.T) {
	calls := l.quiet()
	for i := range 3 {
		version := l.updateNode(t, func(c *corev1.NodeCondition) {
			c.LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(i+1) * time.Hour))
		})
		eventually(t, "the heartbeat arrives", func() bool {
			node, err := l.nodes.Get("node")
			return err == nil && node.ResourceVersion == version
		})
	}
	if after := l.quiet(); after != calls {
		t.Errorf("heartbeats caused %d calls of changed", after-calls)
	}
}

func (l *live) notReady(t *testing.T) {
	revision := l.latest().Revision()
	l.updateNode(t, func(c *corev1.NodeCondition) { c.Status = corev1.ConditionFalse })
	eventually(t, "gvisor's pool is not ready", func() bool { return !l.latest().RuntimeClass("gvisor").PoolReady })
	if l.latest().Revision() == revision {
		t.Error("the revision is the same")
	}
}

func (l *live) deleted(t *testing.T) {
	if err := l.Delete(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "kata is gone", func() bool { return l.latest().RuntimeClass("kata") == nil })
	if l.latest().RuntimeClass("gvisor") == nil {
		t.Error("gvisor is gone too")
	}
}

func (l *live) refused(t *testing.T) {
	calls := l.quiet()
	l.mu.Lock()
	l.refuse = errors.New("not now")
	l.mu.Unlock()
	for n, name := range []string{"one", "two"} {
		if err := l.Create(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "crun"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "class "+name+" is reported", func() bool { return l.calls() > calls+n && l.latest().RuntimeClass(name) != nil })
	}
}

func (l *live) cached(t *testing.T) {
	blind := *l.Informers
	blind.live = nil // a live read would be a nil dereference
	got, err := blind.Namespace(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	want := &catalog.Namespace{
		Name: "team", Annotations: map[string]string{"note": "kept"},
		Labels: map[string]string{catalog.LabelTrust: "untrusted", corev1.LabelMetadataName: "team"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	team := &corev1.Namespace{}
	if err := l.Get(t.Context(), client.ObjectKey{Name: "team"}, team); err != nil {
		t.Fatal(err)
	}
	team.Labels[catalog.LabelTrust] = "trusted"
	if err := l.Update(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new label arrives", func() bool {
		got, err := blind.Namespace(t.Context(), "team")
		return err == nil && got.Labels[catalog.LabelTrust] == "trusted"
	})
}

// readLive looks into a cache that has not heard of the namespace, as it is for an
// instant after a namespace was created.
func (l *live) readLive(t *testing.T) {
	young := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "young", Labels: map[string]string{catalog.LabelTrust: "trusted"}}}
	if err := l.Create(t.Context(), young); err != nil {
		t.Fatal(err)
	}
	behind := *l.Informers
	behind.namespaces = cache.NewGenericLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), namespaceResource.GroupResource())
	for name, informers := range map[string]*Informers{"by a cache that lags": &behind, "at once": l.Informers} {
		got, err := informers.Namespace(t.Context(), "young")
		if err != nil || got.Name != "young" || got.Labels[catalog.LabelTrust] != "trusted" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func (l *live) unknownNamespace(t *testing.T) {
	if got, err := l.Namespace(t.Context(), "absent"); !apierrors.IsNotFound(err) || got != nil {
		t.Errorf("got %+v, %v, want NotFound", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Namespace(ctx, "absent"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a read that was cut short says %v", err)
	}
}

func (l *live) read(t *testing.T) {
	c, namespaces, err := Read(t.Context(), l.config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the informers agree with Read", func() bool {
		watched, err := l.Catalog()
		return err == nil && watched.Revision() == c.Revision()
	})
	if len(c.RuntimeClasses) != 3 || c.RuntimeClass("gvisor") == nil {
		t.Errorf("catalog %+v", c.RuntimeClasses)
	}
	if team := namespaces["team"]; team == nil || team.Labels[catalog.LabelTrust] != "trusted" || team.Annotations["note"] != "kept" || namespaces["default"] == nil {
		t.Errorf("namespaces %v", namespaces)
	}
}

func TestReadSaysWhatItCouldNotList(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Read(ctx, &rest.Config{Host: "https://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "list runtime classes") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsThoughTheClusterNeverAnswers(t *testing.T) {
	t.Parallel()
	i, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := i.Run(ctx, func(context.Context, *catalog.Catalog) error {
		t.Error("changed is called with a catalog that nobody has read")
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesAConfigurationThatReachesNothing(t *testing.T) {
	t.Parallel()
	if _, err := New(&rest.Config{Host: "://"}, logr.Discard()); err == nil {
		t.Error("no error")
	}
}
