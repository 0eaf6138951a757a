package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// timeout is more than the API server takes for any answer: it gives a webhook three
	// seconds, and calls at most three times for a pod.
	timeout = 30 * time.Second
	// pause is how long a client waits that the API server has not served.
	pause = 100 * time.Millisecond
)

// load are clients that create pods, one after the other, as dry runs.
type load struct {
	namespace string
	next      atomic.Int64
	moved     atomic.Pointer[[]string] // classes that the pods of the policy may come out with
	running   sync.WaitGroup

	mu     sync.Mutex
	window *window
}

// start starts that many clients, each with a connection of its own, until ctx ends. A
// call that is under way then is waited for.
func (l *load) start(ctx context.Context, config *rest.Config, clients int) error {
	config = rest.CopyConfig(config)
	config.ContentType, config.Timeout = runtime.ContentTypeProtobuf, timeout
	config.WarningHandler = rest.NoWarnings{}
	for range clients {
		config.Dial = (&net.Dialer{}).DialContext // client-go shares connections between clients that are alike
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		l.running.Go(func() {
			for ctx.Err() == nil {
				if err := l.create(context.WithoutCancel(ctx), client.CoreV1().RESTClient()); err != nil && causeOf(err) == apiServer {
					time.Sleep(pause)
				}
			}
		})
	}
	return nil
}

// enter has the pods whose creation begins from now on counted in another window, and waits
// until the former one's are answered.
func (l *load) enter(w *window) {
	l.mu.Lock()
	former := l.window
	l.window = w
	l.mu.Unlock()
	for former != nil {
		former.mu.Lock()
		open := former.open
		former.mu.Unlock()
		if open == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *load) begin() *window {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.mu.Lock()
	defer l.window.mu.Unlock()
	l.window.open++
	return l.window
}

// create creates one pod and counts it.
func (l *load) create(ctx context.Context, client rest.Interface) error {
	w := l.begin()
	sent, class, isMoved := newPod(l.next.Add(1))
	want := []string{class}
	if isMoved {
		want = *l.moved.Load()
	}
	pod, began := &corev1.Pod{}, time.Now()
	err := client.Post().Namespace(l.namespace).Resource("pods").
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, scheme.ParameterCodec).
		MaxRetries(0). // a failure must show
		Body(sent).Do(ctx).Into(pod)
	took := time.Since(began)
	var wrong error
	if err == nil {
		wrong = check(pod, want)
	}
	w.end(took, err, wrong)
	return err
}
