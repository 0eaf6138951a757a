package guards

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestTheWebhookChoosesAnew: of the fallback's choice nothing is left.
func TestTheWebhookChoosesAnew(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	for profile, want := range map[string]string{"syscall-heavy": "kata-fc", "kernel-features": "kata-qemu", "general": "gvisor"} {
		got := create(t, untrusted, newPod(labelled(catalog.LabelProfile, profile)))
		if classOf(got) != want {
			t.Errorf("%s: class %q, want %s", profile, classOf(got), want)
		}
		if value, ok := got.Annotations[catalog.AnnotationFallback]; ok {
			t.Errorf("%s: the annotation of the fallback stays: %q", profile, value)
		}
		if diff := cmp.Diff(map[string]string{poolLabel: want}, got.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: nodeSelector (-want +got):\n%s", profile, diff)
		}
		var tolerated []string
		for _, toleration := range got.Spec.Tolerations {
			if strings.HasPrefix(toleration.Key, "example.com/") {
				tolerated = append(tolerated, toleration.Value)
			}
		}
		if wanted := strings.Split(want, "-")[:1]; !cmp.Equal(wanted, tolerated) {
			t.Errorf("%s: tolerations of %v, want %v", profile, tolerated, wanted)
		}
		class, err := clients.NodeV1().RuntimeClasses().Get(t.Context(), want, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if memory, wanted := got.Spec.Overhead[corev1.ResourceMemory], class.Overhead.PodFixed[corev1.ResourceMemory]; memory.Cmp(wanted) != 0 {
			t.Errorf("%s: overhead %v, want %v", profile, got.Spec.Overhead, class.Overhead.PodFixed)
		}
	}
	got := create(t, untrusted, newPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{poolLabel: "kata-clh"} }))
	if classOf(got) != "kata-clh" {
		t.Errorf("a pod that selects a pool gets class %q: the fallback must not stand in the way", classOf(got))
	}
}

// TestWhatTheWebhookSees of a pod that the fallback gave a class: the class and the
// annotation, and nothing merged yet.
func TestWhatTheWebhookSees(t *testing.T) {
	untrusted := newNamespace(t, "trust=untrusted")
	first := newMeddler(t, "aa-first", untrusted, func(*corev1.Pod) []patchOperation { return nil })
	first.forget()
	create(t, untrusted, newPod(labelled(catalog.LabelProfile, "syscall-heavy")))
	seen := first.forget()
	if len(seen) == 0 {
		t.Fatal("not called")
	}
	if got := seen[0]; classOf(&got) != "gvisor" || got.Annotations[catalog.AnnotationFallback] != "gvisor" ||
		len(got.Spec.Overhead) > 0 || len(got.Spec.NodeSelector) > 0 {
		t.Errorf("class %q, annotations %v, overhead %v, nodeSelector %v", classOf(&got), got.Annotations, got.Spec.Overhead, got.Spec.NodeSelector)
	}
}

// TestLaterWebhook: what another webhook does after ours is seen, with the backstop and
// without it.
func TestLaterWebhook(t *testing.T) {
	for name, test := range map[string]struct {
		patch    func(*corev1.Pod) []patchOperation
		want     string // of /validate-pod
		backstop string // of the backstop; "" where it leaves it to the webhook
	}{
		"class": {func(p *corev1.Pod) []patchOperation {
			ops := []patchOperation{{Op: "add", Path: "/spec/runtimeClassName", Value: "crun"}, {Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}}}
			if p.Spec.Overhead != nil {
				ops = append(ops, patchOperation{Op: "remove", Path: "/spec/overhead"})
			}
			return ops
		}, `spec.runtimeClassName is "crun"`, "names crun"},
		"selector": {func(*corev1.Pod) []patchOperation {
			return []patchOperation{{Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}}}
		}, "spec.nodeSelector lacks example.com/pool=gvisor", ""},
		// At first something that ours mends, so that this one has the last word.
		"host network": {func(p *corev1.Pod) []patchOperation {
			if _, again := p.Annotations["example.com/called"]; again {
				return []patchOperation{{Op: "add", Path: "/spec/hostNetwork", Value: true}}
			}
			return []patchOperation{
				{Op: "add", Path: "/metadata/annotations/example.com~1called", Value: "once"},
				{Op: "add", Path: "/spec/nodeSelector", Value: map[string]string{}},
			}
		}, "spec.hostNetwork", "spec.hostNetwork"},
	} {
		t.Run(name, func(t *testing.T) {
			untrusted := newNamespace(t, "trust=untrusted")
			last := newMeddler(t, "zz-last", untrusted, test.patch)
			last.forget()
			_, err := try(t, untrusted, newPod())
			if len(last.forget()) == 0 {
				t.Fatal("the other webhook is not called")
			}
			if test.backstop == "" {
				deniedBy(t, "pods-final", err, test.want)
				return
			}
			eventually(t, func() error { // the subtest before has put it back a moment ago
				if _, err = try(t, untrusted, newPod()); err == nil || !strings.Contains(err.Error(), "-backstop") {
					return errors.Join(errors.New("not what is wanted"), err)
				}
				return nil
			})
			refusedBy(t, "backstop", err, test.backstop)
			withoutBackstop(t)
			eventually(t, func() error {
				_, err = try(t, untrusted, newPod())
				if err == nil || strings.Contains(err.Error(), "-backstop") {
					return errors.Join(errors.New("not what is wanted"), err)
				}
				return nil
			})
			deniedBy(t, "pods-final", err, test.want)
		})
	}
}

func deniedBy(t *testing.T, webhook string, err error, want string) {
	t.Helper()
	for _, text := range []string{webhook + ".runtimeclass-router.io", "denied the request: runtimeclass-router: ", want} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

// withoutBackstop takes the backstop's binding away until the test is over.
func withoutBackstop(t *testing.T) {
	t.Helper()
	bindings := clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding, err := bindings.Get(t.Context(), stack.Release+"-backstop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		if _, err := bindings.Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

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

// newMeddler registers a webhook that answers each pod with a patch, each time that it is
// called. Configurations are called in the order of their names. It returns when the API
// server calls it.
func newMeddler(t *testing.T, name, namespace string, patch func(*corev1.Pod) []patchOperation) *meddler {
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
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		if ops := patch(&pod); len(ops) > 0 {
			raw, err := json.Marshal(ops)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			review.Response.Patch, review.Response.PatchType = raw, ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		_ = json.NewEncoder(w).Encode(review) // the API server says what it missed
	}))
	t.Cleanup(server.Close)
	register(t, name+"-"+namespace, namespace, server)
	eventually(t, func() error {
		_, _ = try(t, namespace, newPod()) // refused or not
		if len(m.forget()) == 0 {
			return fmt.Errorf("the API server does not call the other webhook")
		}
		return nil
	})
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

func register(t *testing.T, name, namespace string, server *httptest.Server) {
	t.Helper()
	configurations := clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "pods.example.com",
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
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
