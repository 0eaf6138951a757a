package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

const (
	// maxEvictable bounds what waits for its eviction; the next scan finds the rest.
	maxEvictable = 1000
	// maxEvictionsPerMinute is one a second.
	maxEvictionsPerMinute = 60
	// maxOwners bounds whose evictions are remembered.
	maxOwners = 4096
	// between is how long after one round those that were blocked are tried again.
	between = 10 * time.Second
	// skew is by how much this clock may be ahead of the API server's, which dates pods to
	// the second.
	skew = 10 * time.Second
)

// The outcomes of an attempt.
const (
	evicted = "evicted"
	blocked = "blocked"
	futile  = "futile"
	gone    = "gone"
	failed  = "error"
)

// candidate is a pod below its floor whose owner would make a better one.
type candidate struct {
	namespace, name string
	uid             types.UID
}

// evictableOf reports whether a pod may be evicted: it is below its floor where that is
// enforced, a controller makes another one in its place, and that one would be let in.
// One that would not be leaves less than there was.
func evictableOf(l *Looked) (candidate, bool) {
	if l.Finding == nil || l.Finding.Kind != BelowFloor || !l.Finding.Enforced || !l.admitted || metav1.GetControllerOfNoCopy(l.pod) == nil {
		return candidate{}, false
	}
	return candidate{namespace: l.Namespace, name: l.Name, uid: l.pod.GetUID()}, true
}

// Evictor has pods made anew by their owners, through the eviction API, which goes by
// PodDisruptionBudgets.
type Evictor struct {
	*Scanner
	recorder events.EventRecorder
	rate     flowcontrol.RateLimiter
	// last is when a pod of a controller was evicted. If one that came after it is below the
	// floor as well, the webhook is not asked about them, and evicting would go on for ever.
	last *lru.Cache[types.UID, time.Time]
}

func newEvictor(s *Scanner, recorder events.EventRecorder) (*Evictor, error) {
	last, err := lru.New[types.UID, time.Time](maxOwners)
	return &Evictor{
		Scanner: s, recorder: recorder, last: last,
		rate: flowcontrol.NewTokenBucketRateLimiter(float32(s.options.EvictionsPerMinute)/60, 1),
	}, err
}

// run evicts until nothing is left or ctx ends. Those that a PodDisruptionBudget blocks
// are tried again, after all others.
func (e *Evictor) run(ctx context.Context, candidates []candidate) {
	for len(candidates) > 0 {
		var again []candidate
		for _, c := range candidates {
			if e.rate.Wait(ctx) != nil {
				return
			}
			outcome, err := e.evict(ctx, c)
			if ctx.Err() != nil {
				return
			}
			e.metrics.evictions.WithLabelValues(outcome).Inc()
			switch outcome {
			case blocked:
				again = append(again, c)
			case failed, futile:
				e.log.Error(err, "a pod below its floor is not evicted", "namespace", c.namespace, "pod", c.name)
			}
		}
		candidates = again
		select {
		case <-ctx.Done():
			return
		case <-time.After(between):
		}
	}
}

// evict looks at the pod once more: labels and policy may have changed since it was found.
func (e *Evictor) evict(ctx context.Context, c candidate) (outcome string, err error) {
	looked, err := e.again(ctx, c)
	if apierrors.IsNotFound(err) {
		return gone, nil
	}
	if err != nil {
		return failed, err
	}
	if is, ok := evictableOf(looked); !ok || is != c {
		return gone, nil
	}
	owner := metav1.GetControllerOfNoCopy(looked.pod)
	if at, ok := e.last.Get(owner.UID); ok && looked.pod.GetCreationTimestamp().After(at.Add(-skew)) {
		return futile, errors.New("it came after one of the same owner was evicted, and is no better: is the webhook asked about it?")
	}
	err = e.client.CoreV1().Pods(c.namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(c.uid)}},
	})
	switch {
	case apierrors.IsTooManyRequests(err):
		return blocked, err
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return gone, nil
	case err != nil:
		return failed, err
	}
	e.last.Add(owner.UID, time.Now())
	e.tell(c, looked)
	return evicted, nil
}

// again reads the pod and holds it against the policy.
func (e *Evictor) again(ctx context.Context, c candidate) (*Looked, error) {
	raw, err := e.client.CoreV1().RESTClient().Get().Namespace(c.namespace).Resource("pods").Name(c.name).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the pod: %w", err)
	}
	document, err := survey.Live(raw)
	if err != nil {
		return nil, err
	}
	return e.lookSafely(ctx, document)
}

func (e *Evictor) tell(c candidate, looked *Looked) {
	e.log.Info("a pod below its floor was evicted", "namespace", c.namespace, "pod", c.name, "owner", looked.Finding.Owner)
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.namespace, Name: c.name, UID: c.uid}
	e.recorder.Eventf(pod, nil, corev1.EventTypeWarning, "BelowFloor", "Evict", "evicted: %s", looked.Reason)
}
