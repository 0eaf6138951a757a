package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

func TestWhateverArrivesIsAnsweredWithAReview(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	request := func(fields string) string {
		return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":%q,%s}}`, n.name, fields)
	}
	tests := map[string]struct {
		method string
		body   []byte
		code   int32
	}{
		"nothing":                       {http.MethodPost, nil, http.StatusBadRequest},
		"a GET":                         {http.MethodGet, nil, http.StatusBadRequest},
		"garbage":                       {http.MethodPost, []byte("\x00\xff garbage"), http.StatusBadRequest},
		"half of an object":             {http.MethodPost, []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"Adm`), http.StatusBadRequest},
		"a list":                        {http.MethodPost, []byte(`[]`), http.StatusBadRequest},
		"another kind":                  {http.MethodPost, []byte(`{"apiVersion":"v1","kind":"Pod"}`), http.StatusBadRequest},
		"another version":               {http.MethodPost, []byte(`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}`), http.StatusBadRequest},
		"no request":                    {http.MethodPost, []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), http.StatusBadRequest},
		"more than is read":             {http.MethodPost, bytes.Repeat([]byte(" "), 8<<20), http.StatusBadRequest},
		"no object":                     {http.MethodPost, []byte(request(`"name":"x"`)), http.StatusBadRequest},
		"an object of no kind":          {http.MethodPost, []byte(request(`"object":{}`)), http.StatusBadRequest},
		"an object that is none":        {http.MethodPost, []byte(request(`"object":"pod"`)), http.StatusBadRequest},
		"a workload":                    {http.MethodPost, []byte(request(`"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{},"spec":{}}`)), http.StatusBadRequest},
		"a pod without containers":      {http.MethodPost, []byte(request(`"object":{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{}}`)), http.StatusBadRequest},
		"a pod of another shape":        {http.MethodPost, []byte(request(`"object":{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":"none"}}`)), http.StatusBadRequest},
		"a namespace that is not there": {http.MethodPost, bytes.ReplaceAll(reviewOf(t, n, newPod(), "u"), []byte(n.name), []byte("not-there")), http.StatusInternalServerError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.method, shared.Router.URL+webhook.MutatePodPath, bytes.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := send(shared.Router.HTTP, request)
			if err != nil {
				t.Fatal(err)
			}
			result := answer.response.Result
			if answer.response.Allowed || result == nil || result.Code != test.code || result.Message == "" {
				t.Errorf("allowed %t, result %v; want a refusal with code %d and a message", answer.response.Allowed, result, test.code)
			}
		})
	}
	// None of it has hurt the endpoint.
	pod := newPod()
	answer, err := post(t.Context(), shared.Router.HTTP, shared.Router.URL, reviewOf(t, n, pod, "after"))
	if err != nil {
		t.Fatal(err)
	}
	if answer.response.UID != "after" {
		t.Errorf("answer to %q", answer.response.UID)
	}
	wantPlacement(t, patched(t, pod, answer.response), "gvisor")
}

func TestOperationsOtherThanCreateAreAllowedUntouched(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	for _, operation := range []string{"UPDATE", "DELETE", "CONNECT"} {
		body := bytes.Replace(reviewOf(t, n, newPod(hostNetwork), "u"), []byte(`"operation":"CREATE"`), []byte(`"operation":"`+operation+`"`), 1)
		answer, err := post(t.Context(), shared.Router.HTTP, shared.Router.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		if !answer.response.Allowed || len(answer.response.Patch) > 0 || len(answer.response.Warnings) > 0 {
			t.Errorf("%s: %+v, want it allowed and untouched", operation, answer.response)
		}
	}
}

func TestAnswerToItsOwnOutputIsEmpty(t *testing.T) {
	t.Parallel()
	n := untrusted(t)
	for name, pod := range map[string]*corev1.Pod{
		"no class":       newPod(),
		"class replaced": newPod(class("heavy")),
		"other spelling": newPod(overhead("0.05", "65536Ki")),
		"other profile":  newPod(labelled("workload-profile=bare"), overhead("1", "1Gi")),
	} {
		t.Run(name, func(t *testing.T) {
			first, err := post(t.Context(), shared.Router.HTTP, shared.Router.URL, reviewOf(t, n, pod, "first"))
			if err != nil {
				t.Fatal(err)
			}
			output := patched(t, pod, first.response)
			second, err := post(t.Context(), shared.Router.HTTP, shared.Router.URL, reviewOf(t, n, output, "second"))
			if err != nil {
				t.Fatal(err)
			}
			if !second.response.Allowed || len(second.response.Patch) > 0 {
				t.Errorf("allowed %t, patch %s", second.response.Allowed, second.response.Patch)
			}
		})
	}
}
