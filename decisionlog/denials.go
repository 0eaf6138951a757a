package decisionlog

import (
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Recorder writes Events. client-go's events.EventRecorder does, without waiting for the API
// server, and makes a series of those that differ in nothing but their note.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Reasons of the Events on controllers.
const (
	// ReasonDenied: the policy refuses the pods.
	ReasonDenied = "RuntimeDenied"
	// ReasonUndecided: there was an error in a decision's place, and a pod of mode enforce is
	// refused then.
	ReasonUndecided = "RuntimeUndecided"
)

const (
	// repeatAfter is how long nothing more is said of the same object for the same reason.
	// Controllers try again after seconds at first.
	repeatAfter = time.Minute
	// maxRemembered is how many objects are known to have been told.
	maxRemembered = 4096
	// eventsPerSecond and eventsAtOnce bound what tenants can make the product write.
	eventsPerSecond = 5
	eventsAtOnce    = 50
)

// denials writes an Event on the controller whose pod was refused: the answer goes to the
// controller, and no developer sees it.
type denials struct {
	recorder Recorder
	count    counts

	mu      sync.Mutex
	limiter *rate.Limiter
	told    *lru.Cache[about, time.Time]
}

// about is what an Event is of. The UID is what a pod's author wrote; the namespace keeps
// tenants apart.
type about struct {
	namespace string
	owner     types.UID
	reason    string
}

func newDenials(recorder Recorder, count counts) (*denials, error) {
	told, err := lru.New[about, time.Time](maxRemembered)
	if err != nil {
		return nil, err
	}
	return &denials{recorder: recorder, count: count, limiter: rate.NewLimiter(eventsPerSecond, eventsAtOnce), told: told}, nil
}

func (n *denials) decided(d *webhook.Decision) {
	created := d.Request.Operation == admissionv1.Create && d.Request.SubResource == ""
	if d.Response.Allowed || !created || d.DryRun() || d.Input.Pod == nil {
		return
	}
	owner, err := d.Input.Pod.Controller()
	if err != nil || owner == nil {
		return // whoever made this pod was answered
	}
	reason := ReasonDenied
	if d.Err != nil {
		reason = ReasonUndecided
	}
	if outcome := n.outcome(about{d.Request.Namespace, owner.UID, reason}, owner, d.Started); outcome != n.count.written {
		outcome.Inc()
		return
	}
	n.count.written.Inc()
	n.recorder.Eventf(&corev1.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: d.Request.Namespace, Name: owner.Name, UID: owner.UID,
	}, nil, corev1.EventTypeWarning, reason, "CreatePod", "%s", strings.TrimPrefix(d.Response.Result.Message, "runtimeclass-router: "))
}

// outcome is the counter of what becomes of an Event. The owner is what a pod's author wrote:
// one that the API server would refuse as the name of an object is not sent to it.
func (n *denials) outcome(key about, owner *metav1.OwnerReference, now time.Time) prometheus.Counter {
	if owner.UID == "" || owner.Kind == "" || len(owner.Kind) > maxName || len(validation.IsDNS1123Subdomain(owner.Name)) > 0 {
		return n.count.dropped
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.told.Get(key); ok && now.Sub(last) < repeatAfter {
		return n.count.repeated
	}
	if !n.limiter.AllowN(now, 1) {
		return n.count.dropped
	}
	n.told.Add(key, now)
	return n.count.written
}
