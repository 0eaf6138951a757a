package informers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	nodelisters "k8s.io/client-go/listers/node/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// settle is how long changes are gathered after one has been applied. The first
// change of a burst is applied at once.
const settle = 200 * time.Millisecond

var namespaceResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// Informers are a live cluster's catalog and namespaces.
type Informers struct {
	typed    kinformers.SharedInformerFactory
	metadata metadatainformer.SharedInformerFactory

	classes    nodelisters.RuntimeClassLister
	nodes      corelisters.NodeLister
	namespaces cache.GenericLister
	live       metadata.Interface

	pulse   *pulse
	synced  []cache.InformerSynced
	changed chan struct{} // of size 1: a second signal says nothing new
	log     logr.Logger
}

// New prepares informers for the cluster that config reaches; nothing is asked of
// it before [Informers.Run].
func New(config *rest.Config, log logr.Logger) (*Informers, error) {
	pulse := &pulse{now: time.Now, last: map[string]time.Time{}}
	config = pulse.wrap(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	i := &Informers{
		typed:    kinformers.NewSharedInformerFactoryWithOptions(client, 0, kinformers.WithTransform(strip)),
		metadata: metadatainformer.NewSharedInformerFactoryWithOptions(meta, 0, metadatainformer.WithTransform(strip)),
		live:     meta,
		pulse:    pulse,
		changed:  make(chan struct{}, 1),
		log:      log,
	}
	classes, nodes := i.typed.Node().V1().RuntimeClasses(), i.typed.Core().V1().Nodes()
	namespaces := i.metadata.ForResource(namespaceResource)
	i.classes, i.nodes, i.namespaces = classes.Lister(), nodes.Lister(), namespaces.Lister()
	i.synced = []cache.InformerSynced{namespaces.Informer().HasSynced}
	for _, informer := range []cache.SharedIndexInformer{classes.Informer(), nodes.Informer()} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { i.signal() },
			UpdateFunc: func(before, after any) {
				if !same(before, after) {
					i.signal()
				}
			},
			DeleteFunc: func(any) { i.signal() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch the catalog: %w", err)
		}
		i.synced = append(i.synced, registration.HasSynced)
	}
	return i, nil
}

// Run watches until ctx ends. It calls changed with the first complete catalog and
// with each one after it that may differ, one call at a time. An error of changed is
// logged: the next change tries again.
func (i *Informers) Run(ctx context.Context, changed func(context.Context, *catalog.Catalog) error) error {
	i.typed.StartWithContext(ctx)
	i.metadata.Start(ctx.Done())
	defer i.metadata.Shutdown()
	defer i.typed.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), i.synced...) {
		return nil // ctx ended before the cluster answered
	}
	for {
		c, err := i.Catalog()
		if err == nil {
			err = changed(ctx, c)
		}
		if err != nil {
			i.log.Error(err, "apply the catalog")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-i.changed:
		}
	}
}

func (i *Informers) signal() {
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// Synced reports whether everything that is watched has been read once.
func (i *Informers) Synced() bool {
	for _, synced := range i.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Check returns an error while what is known cannot be trusted: before everything has
// been read once, and when a watch has been silent for longer than the API server's
// bookmarks allow.
func (i *Informers) Check() error {
	if !i.Synced() {
		return ErrNotSynced
	}
	return i.pulse.check()
}

// WatchAges returns how long ago each watch heard an event or a bookmark, by resource.
func (i *Informers) WatchAges() map[string]time.Duration { return i.pulse.ages() }

// Catalog builds the catalog of what is known now.
func (i *Informers) Catalog() (*catalog.Catalog, error) {
	classes, err := i.classes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list runtime classes: %w", err)
	}
	nodes, err := i.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return catalog.Build(classes, nodes), nil
}

// ErrNotSynced is returned while the watches have not caught up.
var ErrNotSynced = errors.New("the cluster has not been read yet")

// Namespace returns a namespace's metadata, from the cache and, where it is missing
// there, from the API server: a pod can arrive before the event of its namespace.
func (i *Informers) Namespace(ctx context.Context, name string) (*catalog.Namespace, error) {
	if !i.Synced() {
		return nil, ErrNotSynced
	}
	object, err := i.namespaces.Get(name)
	if apierrors.IsNotFound(err) {
		object, err = i.live.Resource(namespaceResource).Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	return namespaceOf(object)
}

func namespaceOf(object runtime.Object) (*catalog.Namespace, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("namespace is a %T", object)
	}
	return &catalog.Namespace{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}, nil
}
