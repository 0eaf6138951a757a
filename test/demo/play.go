package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// What a manifest expects of its pods, as annotations.
const (
	expectClass   = "expect.example.com/class"   // the pod's runtime class; "" for none
	expectPool    = "expect.example.com/pool"    // the pool of the node it is bound to; "none" if it must wait
	expectDenied  = "expect.example.com/denied"  // what its denial mentions
	expectWarning = "expect.example.com/warning" // what a warning mentions

	poolLabel = "example.com/pool" // of nodes
	noPool    = "none"
)

// outcome is what became of one pod.
type outcome struct {
	namespace, name string
	trust           string // the namespace's label, where the pod does not say
	expected        map[string]string
	pod             *corev1.Pod // nil if it was denied
	denial          string
	warnings        []string
	fault           string // how it differs from what is expected; empty if it does not
}

// play creates every example through the API server, waits until the scheduler has
// had its say, and compares.
func play(ctx context.Context, s *stack.Stack, manifests *catalog.Manifests) ([]*outcome, error) {
	var outcomes []*outcome
	for i := range manifests.Documents {
		document := &manifests.Documents[i]
		object, ok := document.Object.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%s: document %d: a %s has no place in the demo", document.File, document.Index, document.GVK.Kind)
		}
		warnings := &recorder{}
		config := rest.CopyConfig(s.Config)
		config.WarningHandler = warnings
		c, err := client.New(config, client.Options{Scheme: stack.Scheme})
		if err != nil {
			return nil, err
		}
		err = s.Create(ctx, c, document)
		switch {
		case err != nil && stack.Denied(err):
			outcomes = append(outcomes, &outcome{namespace: object.GetNamespace(), name: object.GetName(), expected: object.GetAnnotations(), denial: denialOf(err)})
		case err != nil:
			return nil, err
		default:
			pods, err := podsOf(ctx, s, object)
			if err != nil {
				return nil, err
			}
			for _, pod := range pods {
				outcomes = append(outcomes, &outcome{namespace: pod.Namespace, name: pod.Name, expected: pod.Annotations, pod: pod, warnings: warnings.messages()})
			}
		}
	}
	for _, o := range outcomes {
		if err := o.check(ctx, s); err != nil {
			return nil, err
		}
		var namespace corev1.Namespace
		if err := s.Client.Get(ctx, client.ObjectKey{Name: o.namespace}, &namespace); err != nil {
			return nil, err
		}
		o.trust = namespace.Labels[catalog.LabelTrust]
	}
	return outcomes, nil
}

// podsOf returns the pod itself, or waits for the pods that a controller makes.
func podsOf(ctx context.Context, s *stack.Stack, object client.Object) ([]*corev1.Pod, error) {
	var selector map[string]string
	var want int32
	switch o := object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim:
		return nil, nil
	case *corev1.Pod:
		return []*corev1.Pod{o}, nil
	case *appsv1.Deployment:
		selector, want = o.Spec.Selector.MatchLabels, ptr.Deref(o.Spec.Replicas, 1)
	case *batchv1.Job:
		selector, want = map[string]string{batchv1.JobNameLabel: o.Name}, ptr.Deref(o.Spec.Parallelism, 1)
	default:
		return nil, fmt.Errorf("the demo does not know how to find the pods of a %T", object)
	}
	var pods []*corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.MatchingLabels(selector)); err != nil {
			return false, err
		}
		pods = nil
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
		return len(pods) == int(want), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %d pods of %s: %w (there are %d)", want, object.GetName(), err, len(pods))
	}
	return pods, nil
}

// check compares with what is expected; it waits for the scheduler.
func (o *outcome) check(ctx context.Context, s *stack.Stack) error {
	wantDenial, denied := o.expected[expectDenied]
	switch {
	case denied && o.pod != nil:
		o.fault = "was admitted, and should be denied"
	case denied && !strings.Contains(o.denial, wantDenial):
		o.fault = fmt.Sprintf("the denial does not mention %q", wantDenial)
	case !denied && o.pod == nil:
		o.fault = "was denied, and should not be"
	}
	if want, ok := o.expected[expectWarning]; ok && !strings.Contains(strings.Join(o.warnings, "\n"), want) {
		o.fault = fmt.Sprintf("no warning mentions %q", want)
	}
	if o.fault != "" || o.pod == nil {
		return nil
	}
	if err := o.settle(ctx, s); err != nil {
		return err
	}
	pool := noPool
	if o.pod.Spec.NodeName != "" {
		var node corev1.Node
		if err := s.Client.Get(ctx, client.ObjectKey{Name: o.pod.Spec.NodeName}, &node); err != nil {
			return err
		}
		pool = node.Labels[poolLabel]
	}
	wantClass, hasClass := o.expected[expectClass]
	class := ptr.Deref(o.pod.Spec.RuntimeClassName, "")
	switch {
	case !hasClass:
		o.fault = "its manifest expects nothing: annotation " + expectClass + " is missing"
	case class != wantClass:
		o.fault = fmt.Sprintf("runtime class %q, want %q", class, wantClass)
	case pool != o.expected[expectPool]:
		o.fault = fmt.Sprintf("bound to pool %q, want %q", pool, o.expected[expectPool])
	}
	return nil
}

// settle waits until the scheduler has bound the pod, or has said that it cannot.
func (o *outcome) settle(ctx context.Context, s *stack.Stack) error {
	mayWait := o.expected[expectPool] == noPool
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		var pod corev1.Pod
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o.pod), &pod); err != nil {
			return false, err
		}
		o.pod = &pod
		for _, c := range pod.Status.Conditions {
			// What is not bound yet may still be: a claim, for one, takes a moment.
			if c.Type == corev1.PodScheduled && (c.Status == corev1.ConditionTrue || mayWait && c.Reason == corev1.PodReasonUnschedulable) {
				return true, nil
			}
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // it waits; check says what that means
	}
	if err != nil {
		return fmt.Errorf("wait for the scheduler to place %s/%s: %w", o.namespace, o.name, err)
	}
	return nil
}

// recorder keeps the warnings of one client's calls.
type recorder struct {
	mu       sync.Mutex
	received []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (r *recorder) HandleWarningHeader(code int, _, text string) {
	if code == 299 && strings.HasPrefix(text, "runtimeclass-router:") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.received = append(r.received, text)
	}
}

func (r *recorder) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

func denialOf(err error) string {
	_, message, _ := strings.Cut(err.Error(), "denied the request: ")
	return message
}
