package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Subject is a pod, or a workload that makes pods.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"` // default where the manifest names none
	Name      string `json:"name"`      // generateName where there is none yet

	// Document and Template are the manifest and where in it the pod is.
	Document *catalog.Document `json:"-"`
	Template webhook.Template  `json:"-"`
}

// Read returns what makes pods in a document, and the input of the decision on the pod
// when it is created at that time. Both are nil for a document that makes none, and the
// subject is there beside an error. A namespace that is not known counts as without labels.
func Read(document *catalog.Document, namespaces map[string]*catalog.Namespace, now time.Time) (*policies.Input, *Subject, error) {
	template, ok := webhook.Templates[document.GVK.Kind]
	if !ok || document.Object == nil {
		return nil, nil, nil
	}
	s := &Subject{Kind: document.GVK.Kind, Document: document, Template: template}
	object, ok := document.Object.(metav1.Object)
	if !ok {
		return nil, s, s.At(fmt.Errorf("a %T has no metadata", document.Object))
	}
	s.Namespace, s.Name = cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), cmp.Or(object.GetName(), object.GetGenerateName())
	raw, err := template.Pod(document.Raw, s.Name)
	if err != nil {
		return nil, s, s.At(err)
	}
	pod, err := policies.ReadPod(raw)
	if err != nil {
		return nil, s, s.At(err)
	}
	namespace, ok := namespaces[s.Namespace]
	if !ok {
		namespace = &catalog.Namespace{Name: s.Namespace}
	}
	return &policies.Input{
		Request:   policies.Request{Operation: "CREATE", Namespace: s.Namespace, Date: now.UTC().Format(time.DateOnly)},
		Namespace: *namespace,
		Pod:       pod,
	}, s, nil
}

// At says where an error is.
func (s *Subject) At(err error) error {
	return fmt.Errorf("%s: %s %s: %w", Place(s.Document), s.Kind, s.Name, err)
}

// Place is where a document stands: in a file, or in a cluster, which counts none.
func Place(document *catalog.Document) string {
	if document.Index == 0 {
		return document.File
	}
	return fmt.Sprintf("%s: document %d", document.File, document.Index)
}

// Mirrors reports whether it is a kubelet's announcement of a static pod, about which
// the webhook is not asked.
func (s *Subject) Mirrors() bool {
	object, ok := s.Document.Object.(metav1.Object)
	return ok && Mirrors(object)
}

// Mirrors reports whether a pod is a kubelet's announcement of a static pod.
func Mirrors(object metav1.Object) bool {
	_, mirror := object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	return mirror && slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Node" })
}

// Owner is [OwnerOf] the pod, and a workload itself.
func (s *Subject) Owner() string {
	own := s.Kind + "/" + s.Name
	object, ok := s.Document.Object.(metav1.Object)
	if !ok {
		return own
	}
	return cmp.Or(OwnerOf(metav1.GetControllerOfNoCopy(object), object.GetLabels()), own)
}

// OwnerOf is the kind/name of what made a pod: its controller, and of the pods of a Deployment
// the Deployment, whose ReplicaSets come and go. It is empty where nothing did.
func OwnerOf(controller *metav1.OwnerReference, labels map[string]string) string {
	if controller == nil {
		return ""
	}
	hash := labels["pod-template-hash"]
	if name, cut := strings.CutSuffix(controller.Name, "-"+hash); controller.Kind == "ReplicaSet" && hash != "" && cut {
		return "Deployment/" + name
	}
	return controller.Kind + "/" + controller.Name
}
