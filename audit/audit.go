package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Auditor holds running pods against the policy of today. Any number of goroutines may use
// it at once.
type Auditor struct {
	// Side is the policy.
	Side *survey.Side
	// Namespace returns a namespace as it is labelled today.
	Namespace func(ctx context.Context, name string) (*catalog.Namespace, error)
	// Exempt are the namespaces about whose pods the webhook is not asked.
	Exempt []string
	// Deadline bounds the decision on one pod; 0 does not.
	Deadline time.Duration
	Now      func() time.Time
}

// Finding is what is true of a pod and of others of its owner.
type Finding struct {
	Namespace string        `json:"namespace"`
	Owner     string        `json:"owner"` // kind/name
	Kind      Kind          `json:"finding"`
	Severity  string        `json:"severity"`
	Mode      policies.Mode `json:"mode"`
	// Enforced: the mode is enforce. In the others nothing else was to be expected.
	Enforced bool `json:"enforced"`
	// RuntimeClassName is the class that the pod has; empty for the node's default.
	RuntimeClassName string `json:"runtimeClassName"`
	// Isolation, Trust and Floor are those of [webhook.Standing].
	Isolation catalog.Isolation `json:"isolation"`
	Trust     string            `json:"trust"`
	Floor     catalog.Isolation `json:"floor"`
	// Today is what happens to the pod that the owner makes next, in the words of the
	// tables.
	Today string `json:"today"`
}

// Why a pod is left out.
const (
	Exempt   = "exempt"   // the webhook is not asked about its namespace
	Mirror   = "mirror"   // a static pod's, which no webhook is asked about
	Finished = "finished" // it runs no more, or is being deleted
	Unborn   = "unborn"   // a manifest that no cluster has run
)

// Looked is what came of looking at one pod.
type Looked struct {
	Namespace, Name string
	// LeftOut says why nothing else is known; empty for a pod that was looked at.
	LeftOut string
	// Mode is its namespace's.
	Mode policies.Mode
	// Finding is nil for a pod that is as it should be.
	Finding *Finding
	Reason  string

	// admitted: the pod that its owner makes next would be let in.
	admitted bool
	pod      metav1.Object
}

// running is what is read of a pod as it is.
type running struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		RuntimeClassName string            `json:"runtimeClassName"`
		NodeSelector     map[string]string `json:"nodeSelector"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// Look holds one pod against the policy; nil comes back for a document of another kind.
// The error is of a pod that cannot be read.
func (a *Auditor) Look(ctx context.Context, document *catalog.Document) (*Looked, error) {
	pod, ok := document.Object.(metav1.Object)
	if document.GVK.Kind != "Pod" || !ok {
		return nil, nil
	}
	var is running
	if err := json.Unmarshal(document.Raw, &is); err != nil {
		return nil, fmt.Errorf("%s: pod %s: %w", survey.Place(document), pod.GetName(), err)
	}
	l := &Looked{Namespace: cmp.Or(pod.GetNamespace(), metav1.NamespaceDefault), Name: pod.GetName(), pod: pod}
	if l.LeftOut = a.leftOut(l, &is); l.LeftOut != "" {
		return l, nil
	}
	namespace, err := a.Namespace(ctx, l.Namespace)
	if apierrors.IsNotFound(err) { // and the pod goes with it
		l.LeftOut = Finished
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", l.Namespace, err)
	}
	return l, a.judge(ctx, l, &is, document, namespace)
}

func (a *Auditor) leftOut(l *Looked, is *running) string {
	switch {
	case slices.Contains(a.Exempt, l.Namespace):
		return Exempt
	case survey.Mirrors(l.pod):
		return Mirror
	case is.Metadata.DeletionTimestamp != nil, is.Status.Phase == corev1.PodSucceeded, is.Status.Phase == corev1.PodFailed:
		return Finished
	case is.Status.Phase == "":
		return Unborn
	}
	return ""
}

func (a *Auditor) judge(ctx context.Context, l *Looked, is *running, document *catalog.Document, namespace *catalog.Namespace) error {
	snapshot, err := a.Side.Router.Engine.Snapshot()
	if err != nil {
		return err
	}
	next, err := survey.Recreate(document.Raw, snapshot.Catalog())
	if err != nil {
		return fmt.Errorf("%s: pod %s: %w", survey.Place(document), l.Name, err)
	}
	renewed := *document
	renewed.Raw = next.Raw
	in, subject, err := survey.Read(&renewed, map[string]*catalog.Namespace{l.Namespace: namespace}, a.Now())
	if err != nil {
		return err
	}
	standing, err := webhook.Stand(snapshot, in, is.Spec.RuntimeClassName)
	if err != nil {
		return subject.At(err)
	}
	if a.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Deadline)
		defer cancel()
	}
	verdict, err := a.Side.Verdict(ctx, in)
	if err != nil {
		return subject.At(err)
	}
	route := &verdict.Route
	l.Mode = route.Mode
	l.admitted = route.Action != "" && route.Action != policies.Deny
	kind, reason := find(is, standing, verdict, snapshot.Catalog())
	if kind == None {
		return nil
	}
	l.Reason = short(reason)
	l.Finding = &Finding{
		Namespace: l.Namespace, Owner: subject.Owner(), Kind: kind, Severity: kind.Severity(),
		Mode: route.Mode, Enforced: route.Mode == policies.Enforce,
		RuntimeClassName: is.Spec.RuntimeClassName, Isolation: standing.Isolation, Trust: standing.Trust, Floor: standing.Floor,
		Today: verdict.Said,
	}
	return nil
}

// find says what is wrong, and why.
func find(is *running, standing webhook.Standing, verdict *survey.Verdict, known *catalog.Catalog) (Kind, string) {
	route, class := &verdict.Route, is.Spec.RuntimeClassName
	reasons := strings.Join(verdict.Reasons, "; ")
	switch {
	case standing.Below:
		return BelowFloor, below(class, standing, known)
	case route.Action == "":
		return PolicyError, reasons
	case route.Action == policies.Deny:
		return WouldBeDenied, reasons
	case route.RuntimeClassName != class:
		return Drifted, reasons
	}
	wanted := maps.Clone(route.NodeSelector)
	if c := known.RuntimeClass(class); c != nil {
		if wanted == nil {
			wanted = map[string]string{}
		}
		maps.Copy(wanted, c.NodeSelector)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, ok := is.Spec.NodeSelector[key]; !ok || value != wanted[key] {
			return Drifted, fmt.Sprintf("spec.nodeSelector lacks %s=%s, which runtime class %s has today", key, wanted[key], class)
		}
	}
	return None, ""
}

// below says in words what is wrong with a class, the node's default if it is empty.
func below(class string, standing webhook.Standing, known *catalog.Catalog) string {
	runtime := "the node's default"
	if found := known.RuntimeClass(class); found != nil {
		runtime = fmt.Sprintf("handler %s", found.Handler)
	} else if class != "" {
		runtime = "a class that is gone"
	}
	return fmt.Sprintf("%s counts as %s, and trust %s takes %s", runtime, standing.Isolation, standing.Trust, standing.Floor)
}

// maxReason bounds what is kept of a reason, in bytes.
const maxReason = 600

func short(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason-len("...")], "") + "..."
}
