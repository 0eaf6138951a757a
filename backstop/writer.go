package backstop

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// fieldManager owns the annotations.
const fieldManager = "runtimeclass-router"

const (
	// look is how often the parameters are worked out anew without a signal: a day ends,
	// and a configuration is reloaded.
	look = 5 * time.Second
	// resync is how often they are written though they are the same: whoever changed them
	// by hand, or a replica of the version before, is overruled. An apply that changes
	// nothing is not stored.
	resync = time.Minute
	// firstRetry doubles up to resync.
	firstRetry = time.Second
	// patience bounds one write.
	patience = 10 * time.Second
)

// Source tells what is in force.
type Source func() (*policies.Config, *catalog.Catalog, error)

// Writer keeps the ServiceAccount in step with the catalog and the configuration. All
// replicas write the same, so it does not matter which does.
type Writer struct {
	options  Options
	source   Source
	accounts corev1client.ServiceAccountInterface
	nodes    func() []string
	watch    *nodeNames
	now      func() time.Time
	log      logr.Logger
	changed  chan struct{} // of size 1: a second signal says nothing new

	// What follows is Run's own.
	written map[string]string // the data last written
	at      time.Time         // and when
	noted   string            // the note last logged
}

// NewWriter prepares a writer; nothing is asked of the cluster before [Writer.Run].
func NewWriter(config *rest.Config, o Options, source Source, log logr.Logger) (*Writer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	w := &Writer{
		options:  o,
		source:   source,
		accounts: client.CoreV1().ServiceAccounts(o.Namespace),
		now:      time.Now,
		log:      log,
		changed:  make(chan struct{}, 1),
	}
	if w.watch, err = newNodeNames(config, w.Changed); err != nil {
		return nil, err
	}
	w.nodes = w.watch.list
	return w, nil
}

// Changed tells the writer that the source may answer something else. It returns at once.
func (w *Writer) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends. What cannot be written is logged and tried again: the
// webhook serves all the same, and the guards go by what was written last.
func (w *Writer) Run(ctx context.Context) error {
	w.watch.factory.Start(ctx.Done())
	defer w.watch.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), w.watch.synced) {
		return nil // ctx ended before the cluster answered
	}
	w.loop(ctx)
	return nil
}

func (w *Writer) loop(ctx context.Context) {
	retry := firstRetry
	for {
		next := look
		if err := w.write(ctx); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			w.log.Error(err, "write the guards' parameters", "retryIn", retry.String())
			next, retry = retry, min(2*retry, resync)
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// write writes what is new, and what has not been written for a while.
func (w *Writer) write(ctx context.Context) error {
	config, c, err := w.source()
	if err != nil {
		return err
	}
	now := w.now()
	data, note, err := Parameters(State{
		Config: config, Catalog: c, Nodes: w.nodes(), Fallback: w.options.Fallback, Date: now.UTC().Format(time.DateOnly),
	})
	if err != nil {
		return err
	}
	same := maps.Equal(data, w.written)
	if same && now.Sub(w.at) < resync {
		return nil
	}
	if note != "" && note != w.noted {
		w.log.Info("the fallback is off", "reason", note)
	}
	w.noted = note
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	object := corev1apply.ServiceAccount(w.options.ServiceAccount, w.options.Namespace).WithAnnotations(data)
	if _, err := w.accounts.Apply(ctx, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply service account %s/%s: %w", w.options.Namespace, w.options.ServiceAccount, err)
	}
	if !same {
		w.log.Info("guards' parameters written", "serviceAccount", w.options.ServiceAccount, "catalogRevision", c.Revision(), "fallback", data[KeyFallback])
	}
	w.written, w.at = data, now
	return nil
}
