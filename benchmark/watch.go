package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// subject is a pod that is watched.
type subject struct {
	mu   sync.Mutex
	seen observation

	over chan struct{} // closed when it has ended
	gone chan struct{} // closed when the API server has it no more
	lost func()        // closes gone, once
}

// watch tells subjects by name what becomes of them.
type watch struct {
	mu       sync.Mutex
	subjects map[string]*subject
}

// startWatch returns when events arrive, and watches until ctx ends. It is one informer
// for all pods, begun before the first of them: it survives a watch that breaks off.
func startWatch(ctx context.Context, client kubernetes.Interface, p *Plan) (*watch, error) {
	w := &watch{subjects: map[string]*subject{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(p.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = p.Selector() }))
	pods := factory.Core().V1().Pods().Informer()
	// An informer tries again without end, and says why to nobody but this.
	var mu sync.Mutex
	var last error
	if err := pods.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		mu.Lock()
		defer mu.Unlock()
		last = err
	}); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	handler, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.see(object, time.Now()) },
		UpdateFunc: func(_, object any) { w.see(object, time.Now()) },
		DeleteFunc: w.lose,
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	starting, cancel := context.WithTimeoutCause(ctx, callTimeout, errors.New("no answer in "+callTimeout.String()))
	defer cancel()
	if !cache.WaitForCacheSync(starting.Done(), handler.HasSynced) {
		mu.Lock()
		defer mu.Unlock()
		return nil, fmt.Errorf("watch pods in namespace %s: %w", p.Namespace, errors.Join(context.Cause(starting), last))
	}
	return w, nil
}

func (w *watch) see(object any, at time.Time) {
	pod, ok := object.(*corev1.Pod)
	s := w.subject(pod.GetName())
	if !ok || s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen.over()
	if s.seen.see(pod, at); s.seen.over() && !was {
		close(s.over)
	}
}

func (w *watch) lose(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		if s := w.subject(pod.Name); s != nil {
			s.lost()
		}
	}
}

func (w *watch) subject(name string) *subject {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.subjects[name]
}

// expect is called before the pod is created, so that no event comes too early.
func (w *watch) expect(name string) *subject {
	gone := make(chan struct{})
	s := &subject{over: make(chan struct{}), gone: gone, lost: sync.OnceFunc(func() { close(gone) })}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subjects[name] = s
	return s
}

func (w *watch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.subjects, name)
}

// observed is what has been seen by now.
func (s *subject) observed() observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}
