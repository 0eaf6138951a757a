package integration

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// meddler is somebody else's mutating webhook, called for the pods of one namespace.
type meddler struct {
	mu   sync.Mutex
	seen []corev1.Pod // as they arrived
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// newMeddler registers a webhook that answers each pod with a patch. Configurations
// are called in the order of their names, so that this one comes after ours. It
// returns when the API server calls it.
func newMeddler(t *testing.T, n *namespace, policy admissionregistrationv1.ReinvocationPolicyType, patch func(*corev1.Pod) []patchOperation) *meddler {
	t.Helper()
	m := &meddler{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		m.seen = append(m.seen, pod)
		m.mu.Unlock()
		raw, err := json.Marshal(patch(&pod))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: raw, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the API server says what it missed
	}))
	t.Cleanup(server.Close)
	registerWebhook(t, n, "zz-meddler-"+n.name, server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), policy)
	poll(t, func(context.Context) (bool, error) {
		n.dryRun(newPod()) // refused or not
		return len(m.forget()) > 0, nil
	}, func() string { return "the API server does not call the other webhook" })
	return m
}

// forget returns the pods that arrived since it was called last.
func (m *meddler) forget() []corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen
	m.seen = nil
	return seen
}

// registerWebhook has the API server call a URL for the pods of one namespace.
func registerWebhook(t *testing.T, n *namespace, name, url string, ca []byte, policy admissionregistrationv1.ReinvocationPolicyType) {
	t.Helper()
	configurations := clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "pods.example.com",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.name}},
			ReinvocationPolicy: &policy,
			SideEffects:        ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configurations.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete webhook configuration: %v", err)
		}
	})
}
