package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// configMapSettle is how long changes are gathered: `kubectl apply -f DIRECTORY` sends
// one ConfigMap after the other.
const configMapSettle = 200 * time.Millisecond

// configMaps are the labelled ConfigMaps of one namespace.
type configMaps struct {
	namespace string
	selector  string
	client    kubernetes.Interface
	changed   chan struct{} // of size 1: a second signal says nothing new
	asked     chan error    // what the last request to the API server ended with
	settle    time.Duration
}

// NewConfigMaps returns the ConfigMaps of a namespace whose policy label has that value as
// a source, watched. A file is called CONFIGMAP/KEY.
func NewConfigMaps(client kubernetes.Interface, namespace, value string) Source {
	return &configMaps{
		namespace: namespace,
		selector:  catalog.LabelPolicy + "=" + value,
		client:    client,
		changed:   make(chan struct{}, 1),
		asked:     make(chan error, 1),
		settle:    configMapSettle,
	}
}

// ID implements [Source].
func (c *configMaps) ID() ID { return ID{KindConfigMaps, c.namespace} }

// Run implements [Source].
func (c *configMaps) Run(ctx context.Context, deliver func(Delivery)) error {
	informer := cache.NewSharedIndexInformer(c.listWatch(), &corev1.ConfigMap{}, 0, nil)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.signal() },
		UpdateFunc: func(any, any) { c.signal() },
		DeleteFunc: func(any) { c.signal() },
	})
	if err != nil {
		return fmt.Errorf("watch policy ConfigMaps: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-ended }()
	synced := registration.HasSyncedChecker().Done()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.asked:
			if err != nil {
				deliver(Delivery{Err: fmt.Errorf("watch ConfigMaps labelled %s in namespace %s: %w", c.selector, c.namespace, err)})
				continue
			}
		case <-synced:
			synced = nil
		case <-c.changed:
			if !sleep(ctx, c.settle) {
				return nil
			}
		}
		if registration.HasSynced() {
			deliver(read(informer.GetStore().List()))
		}
	}
}

func (c *configMaps) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// listWatch asks for the labelled objects, and passes on what a request ends with: an
// informer that may not watch says so in the log only, and tries for ever.
func (c *configMaps) listWatch() cache.ListerWatcher {
	tell := func(err error) {
		select {
		case <-c.asked: //nolint:errcheck // an older one, which nobody has read
		default:
		}
		c.asked <- err
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = c.selector
			list, err := c.client.CoreV1().ConfigMaps(c.namespace).List(ctx, options)
			tell(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = c.selector
			w, err := c.client.CoreV1().ConfigMaps(c.namespace).Watch(ctx, options)
			tell(err)
			return w, err
		},
	}, c.client)
}

// read makes files of ConfigMaps.
func read(objects []any) Delivery {
	d := Delivery{Modules: policies.Modules{}, Objects: map[string]corev1.ObjectReference{}}
	var errs []error
	for _, object := range objects {
		configMap, ok := object.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		d.Objects[configMap.Name] = corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: configMap.Namespace, Name: configMap.Name,
			UID: configMap.UID, ResourceVersion: configMap.ResourceVersion,
		}
		modules, err := policies.ConfigMapModules(configMap)
		maps.Copy(d.Modules, modules)
		errs = append(errs, err)
	}
	if d.Err = errors.Join(errs...); d.Err != nil {
		d.Modules = nil
	}
	return d
}
