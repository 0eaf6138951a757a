package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// reviewOf is what the API server sends for a pod.
func reviewOf(t *testing.T, n *namespace, pod *corev1.Pod, uid types.UID) []byte {
	t.Helper()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       uid,
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: n.name,
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return review
}

// reviewAnswer is an answered review and what HTTP says about it.
type reviewAnswer struct {
	response *admissionv1.AdmissionResponse
	proto    int
	// closing: the answer asks its client for a new connection.
	closing bool
}

// post sends a body to the endpoint. Anything but an AdmissionReview with a response
// is an error.
func post(ctx context.Context, client *http.Client, url string, body []byte) (reviewAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+webhook.MutatePodPath, bytes.NewReader(body))
	if err != nil {
		return reviewAnswer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	return send(client, request)
}

func send(client *http.Client, request *http.Request) (reviewAnswer, error) {
	response, err := client.Do(request)
	if err != nil {
		return reviewAnswer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return reviewAnswer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return reviewAnswer{}, fmt.Errorf("status %s: %s", response.Status, raw)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil {
		return reviewAnswer{}, fmt.Errorf("answer %q: %w", raw, err)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil {
		return reviewAnswer{}, fmt.Errorf("answer %q is no AdmissionReview with a response", raw)
	}
	return reviewAnswer{response: review.Response, proto: response.ProtoMajor, closing: response.Close}, nil
}

// patched applies a response to the pod it is for.
func patched(t *testing.T, pod *corev1.Pod, response *admissionv1.AdmissionResponse) *corev1.Pod {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("not allowed: %v", response.Result)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatalf("patch %s: %v", response.Patch, err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatalf("patch %s: %v", response.Patch, err)
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}
