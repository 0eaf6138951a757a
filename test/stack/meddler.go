package stack

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Meddler is somebody else's mutating webhook, called for the pods of one namespace.
type Meddler struct {
	server *httptest.Server
	remove func(context.Context) error

	mu   sync.Mutex
	seen []corev1.Pod // as they arrived
}

// PatchOperation is one of a JSON patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// NewMeddler registers a webhook that answers each pod with a patch, or with none where
// there are no operations. Configurations are called in the order of their names. The
// caller waits until the API server calls it, and ends it by Stop.
func (s *Stack) NewMeddler(ctx context.Context, name, namespace string, again admissionregistrationv1.ReinvocationPolicyType, patch func(*corev1.Pod) []PatchOperation) (*Meddler, error) {
	m := &Meddler{}
	m.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.answer(w, r, patch); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
	var err error
	if m.remove, err = s.CallForPods(ctx, name, namespace, m.server.URL, ca, again); err != nil {
		m.server.Close()
		return nil, err
	}
	return m, nil
}

// CallForPods has the API server call a URL for the pods of one namespace, until remove is
// called.
func (s *Stack) CallForPods(ctx context.Context, name, namespace, url string, ca []byte, again admissionregistrationv1.ReinvocationPolicyType) (remove func(context.Context) error, err error) {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "pods.example.com",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ReinvocationPolicy: &again,
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
		}},
	}
	if err := s.Client.Create(ctx, configuration); err != nil {
		return nil, fmt.Errorf("register webhook %s: %w", name, err)
	}
	return func(ctx context.Context) error { return s.Client.Delete(ctx, configuration) }, nil
}

func (m *Meddler) answer(w http.ResponseWriter, r *http.Request, patch func(*corev1.Pod) []PatchOperation) error {
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return err
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		return err
	}
	m.mu.Lock()
	m.seen = append(m.seen, pod)
	m.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	if ops := patch(&pod); len(ops) > 0 {
		raw, err := json.Marshal(ops)
		if err != nil {
			return err
		}
		review.Response.Patch, review.Response.PatchType = raw, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return json.NewEncoder(w).Encode(review)
}

// Forget returns the pods that arrived since it was called last.
func (m *Meddler) Forget() []corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen
	m.seen = nil
	return seen
}

// Stop removes the registration and ends the server.
func (m *Meddler) Stop(ctx context.Context) error {
	defer m.server.Close()
	return m.remove(ctx)
}
