package backstop

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// written is a writer over a fake API server, and how many writes that one got.
type written struct {
	*Writer
	t       *testing.T
	client  *fake.Clientset
	writes  atomic.Int32
	failing atomic.Bool
	classes atomic.Pointer[[]*nodev1.RuntimeClass]
}

func newWritten(t *testing.T, config policies.Config) *written {
	w := &written{t: t, client: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "router", Name: "guards", Labels: map[string]string{"a": "b"}}})}
	w.classes.Store(&[]*nodev1.RuntimeClass{})
	w.client.PrependReactor("patch", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.writes.Add(1)
		if w.failing.Load() {
			return true, nil, errors.New("no")
		}
		return false, nil, nil
	})
	w.Writer = &Writer{
		options:  Options{Namespace: "router", ServiceAccount: "guards"},
		accounts: w.client.CoreV1().ServiceAccounts("router"),
		nodes:    func() []string { return nil },
		source: func() (*policies.Config, *catalog.Catalog, error) {
			return &config, catalog.Build(*w.classes.Load(), nil), nil
		},
		// Ten minutes to midnight when the bubble's clock starts, which is at midnight.
		now:     func() time.Time { return time.Now().Add(24*time.Hour - 10*time.Minute) },
		log:     logr.Discard(),
		changed: make(chan struct{}, 1),
	}
	return w
}

func (w *written) data() map[string]string {
	w.t.Helper()
	account, err := w.client.CoreV1().ServiceAccounts("router").Get(context.Background(), "guards", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if account.Labels["a"] != "b" {
		w.t.Error("what others wrote is lost")
	}
	return account.Annotations
}

// run runs the loop in a bubble, in which time passes as soon as nothing else does.
func run(t *testing.T, config policies.Config, steps func(*testing.T, *written)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWritten(t, config)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.loop(ctx) }()
		synctest.Wait()
		steps(t, w)
		cancel()
		<-done
	})
}

func TestWriterFollows(t *testing.T) {
	t.Parallel()
	run(t, policies.DefaultConfig(), func(t *testing.T, w *written) {
		if got := w.data()[KeyLevels]; got != "trusted\nuntrusted" {
			t.Errorf("levels %q", got)
		}
		w.classes.Store(&[]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"}})
		w.Changed()
		synctest.Wait()
		if got := w.data()[KeyClasses]; got != "untrusted/gvisor" {
			t.Errorf("after a signal: classes %q", got)
		}
		w.classes.Store(&[]*nodev1.RuntimeClass{})
		time.Sleep(look + time.Second)
		synctest.Wait()
		if got := w.data()[KeyClasses]; got != "" {
			t.Errorf("without a signal: classes %q", got)
		}
	})
}

// TestWriterIsQuiet: what is the same is not written again before it is time to.
func TestWriterIsQuiet(t *testing.T) {
	t.Parallel()
	run(t, policies.DefaultConfig(), func(t *testing.T, w *written) {
		time.Sleep(resync - look - time.Second)
		w.Changed()
		synctest.Wait()
		if got := w.writes.Load(); got != 1 {
			t.Errorf("%d writes, want 1", got)
		}
		time.Sleep(2 * look)
		synctest.Wait()
		if got := w.writes.Load(); got != 2 {
			t.Errorf("%d writes after %s, want 2", got, resync)
		}
	})
}

func TestWriterTriesAgain(t *testing.T) {
	t.Parallel()
	run(t, policies.DefaultConfig(), func(t *testing.T, w *written) {
		w.failing.Store(true)
		w.classes.Store(&[]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"}})
		w.Changed()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// 1, 2, 4, ... seconds, and then one a minute.
		if got := w.writes.Load(); got < 10 || got > 20 {
			t.Errorf("%d writes in ten minutes", got)
		}
		w.failing.Store(false)
		time.Sleep(resync + time.Second)
		synctest.Wait()
		if got := w.data()[KeyClasses]; got != "untrusted/gvisor" {
			t.Errorf("classes %q", got)
		}
	})
}

// TestWriterNoticesTheDay: an exception ends with its last day.
func TestWriterNoticesTheDay(t *testing.T) {
	t.Parallel()
	config := policies.DefaultConfig()
	config.Exceptions = []policies.Exception{{Name: "e", Namespaces: []string{"a"}, RuntimeClassName: "crun", Until: "2000-01-01"}}
	run(t, config, func(t *testing.T, w *written) {
		if got := w.data()[KeyExceptions]; got != "a/crun/*" {
			t.Errorf("exceptions %q", got)
		}
		time.Sleep(10*time.Minute + look)
		synctest.Wait()
		if got := w.data()[KeyExceptions]; got != "" {
			t.Errorf("the day after: %q", got)
		}
	})
}

func TestOnlyNamesAreKept(t *testing.T) {
	t.Parallel()
	got, err := onlyName(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}})
	if m, ok := got.(*metav1.PartialObjectMetadata); err != nil || !ok || m.Name != "n" || m.Labels != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
