package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// answer is the AdmissionReview in a response, which must be a well-formed one.
func answer(t testing.TB, recorder *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	if recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("HTTP %d, %s", recorder.Code, recorder.Header().Get("Content-Type"))
	}
	decoder := json.NewDecoder(recorder.Body)
	decoder.DisallowUnknownFields()
	var review admissionv1.AdmissionReview
	if err := decoder.Decode(&review); err != nil {
		t.Fatal(err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || review.Response == nil || review.Request != nil {
		t.Fatalf("no answer: %+v", review)
	}
	r := review.Response
	if !r.Allowed && (r.Result == nil || r.Result.Code < 400 || r.Result.Message == "" || len(r.Patch) > 0) {
		t.Fatalf("refused without saying so, or with a patch: %+v", r)
	}
	if (len(r.Patch) > 0) != (r.PatchType != nil) || r.PatchType != nil && *r.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("a patch and its type go together: %+v", r)
	}
	return r
}

func post(t testing.TB, endpoint *Endpoint, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	endpoint.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, MutatePodPath, bytes.NewReader(body)))
	return recorder
}

// review is a CREATE of a pod in a namespace.
func review(namespace string, pod json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-1", "operation": "CREATE",
		"kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": %q, "object": %s}}`, namespace, pod)
}

// unreachable is a handler that nothing may reach.
func unreachable(t testing.TB) admission.Handler {
	return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		t.Error("the handler was called")
		return admission.Allowed("")
	})
}

func TestABadReviewIsAnsweredWithAReview(t *testing.T) {
	t.Parallel()
	const head = `"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"`
	tests := map[string]struct {
		method, body string
		want         string
	}{
		"not JSON":             {"POST", "hello", "undecodable review"},
		"empty":                {"POST", "", "undecodable review"},
		"cut short":            {"POST", "{" + head + `, "request": {"uid": "u-1"`, "undecodable review"},
		"null":                 {"POST", "null", `kind "", want admission.k8s.io/v1, AdmissionReview`},
		"a list":               {"POST", "[]", "undecodable review"},
		"two values":           {"POST", "{" + head + `, "request": {"uid": "u-1"}} {}`, "undecodable review"},
		"wrong kind":           {"POST", `{"apiVersion": "admission.k8s.io/v1", "kind": "Pod", "request": {"uid": "u-1"}}`, `kind "Pod"`},
		"wrong version":        {"POST", `{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "u-1"}}`, `apiVersion "admission.k8s.io/v1beta1"`},
		"wrong group":          {"POST", `{"apiVersion": "v1", "kind": "AdmissionReview", "request": {"uid": "u-1"}}`, `apiVersion "v1"`},
		"no request":           {"POST", "{" + head + "}", "field request is missing"},
		"request is null":      {"POST", "{" + head + `, "request": null}`, "field request is missing"},
		"request is an answer": {"POST", "{" + head + `, "response": {"uid": "u-1", "allowed": true}}`, "field request is missing"},
		"a field's type":       {"POST", "{" + head + `, "request": {"uid": 7}}`, "/request/uid"},
		"GET":                  {"GET", "", "method GET, want POST"},
		"PUT":                  {"PUT", string(review("ns", pod(""))), "method PUT, want POST"},
		"over the limit":       {"POST", "{" + head + `, "request": {"uid": "` + strings.Repeat("x", maxReview) + `"}}`, "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), test.method, MutatePodPath, strings.NewReader(test.body))
			(&Endpoint{Handler: unreachable(t), Log: logr.Discard()}).ServeHTTP(recorder, request)
			got := answer(t, recorder)
			if got.Allowed || got.Result.Code != 400 || !strings.Contains(got.Result.Message, test.want) || !strings.HasPrefix(got.Result.Message, prefix) {
				t.Errorf("got %+v, want a refusal that says %q", got.Result, test.want)
			}
		})
	}
}

func TestAReviewAtTheLimitIsRead(t *testing.T) {
	t.Parallel()
	body := review("ns", pod(""))
	body = append(body, bytes.Repeat([]byte(" "), maxReview-len(body))...)
	endpoint := &Endpoint{Log: logr.Discard(), Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}
	if got := answer(t, post(t, endpoint, body)); !got.Allowed || got.UID != "u-1" {
		t.Errorf("got %+v", got)
	}
}

func TestABodyThatBreaksOffIsRefused(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, MutatePodPath, io.MultiReader(strings.NewReader("{"), brokenPipe{}))
	(&Endpoint{Handler: unreachable(t), Log: logr.Discard()}).ServeHTTP(recorder, request)
	if got := answer(t, recorder); got.Allowed || got.Result.Code != 400 {
		t.Errorf("got %+v", got)
	}
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAPanicIsARefusal(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"of a string": "secret: password", "of an error": io.EOF} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := &Endpoint{Log: logr.Discard(), Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				panic(value)
			})}
			got := answer(t, post(t, endpoint, review("ns", pod(""))))
			if got.Allowed || got.Result.Code != 500 || got.UID != "u-1" {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(got.Result.Message, fmt.Sprint(value)) {
				t.Errorf("the panic's text reaches the user: %s", got.Result.Message)
			}
		})
	}
}

func TestAPatchThatCannotBeEncodedIsARefusal(t *testing.T) {
	t.Parallel()
	endpoint := &Endpoint{Log: logr.Discard(), Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Patched("", jsonpatch.NewOperation("add", "/a", func() {}))
	})}
	if got := answer(t, post(t, endpoint, review("ns", pod("")))); got.Allowed || got.Result.Code != 500 || got.UID != "u-1" {
		t.Errorf("got %+v", got)
	}
}

func TestAGoodReviewIsAnsweredWithAPatchThatApplies(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	object := pod(`"futureField": [1]`)
	got := answer(t, post(t, &Endpoint{Handler: handler, Log: logr.Discard()}, review("untrusted", object)))
	if !got.Allowed || got.UID != "u-1" || got.AuditAnnotations["action"] != "route" {
		t.Fatalf("got %+v", got)
	}
	var ops []jsonpatch.Operation
	if err := json.Unmarshal(got.Patch, &ops); err != nil {
		t.Fatal(err)
	}
	var patched struct {
		Spec struct {
			RuntimeClassName string
			FutureField      []int
		}
	}
	if err := json.Unmarshal(apply(t, object, ops), &patched); err != nil {
		t.Fatal(err)
	}
	if patched.Spec.RuntimeClassName != "gvisor" || len(patched.Spec.FutureField) != 1 {
		t.Errorf("got %+v", patched)
	}
}

func TestAReviewWithoutAPatchHasNoPatchType(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	got := answer(t, post(t, &Endpoint{Handler: handler, Log: logr.Discard()}, review("audited", pod(""))))
	if !got.Allowed || got.PatchType != nil || len(got.Patch) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestDrainingClosesConnections(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	endpoint := &Endpoint{Handler: handler, Log: logr.Discard()}
	for _, draining := range []bool{false, true} {
		for name, body := range map[string][]byte{"good": review("trusted", pod("")), "bad": []byte("{")} {
			recorder := post(t, endpoint, body)
			if got := recorder.Header().Get("Connection") == "close"; got != draining {
				t.Errorf("draining %t, %s review: Connection %q", draining, name, recorder.Header().Get("Connection"))
			}
			answer(t, recorder)
		}
		endpoint.Drain()
	}
}

func TestAnObjectThatIsNoPodIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	const head = `"apiVersion": "v1", "kind": "Pod", "metadata": {}`
	tests := map[string]struct{ object, want string }{
		"a Deployment":            {`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {}}`, `apiVersion "apps/v1", kind "Deployment" is no v1 Pod`},
		"no kind":                 {`{"apiVersion": "v1", "metadata": {}, "spec": {"containers": [{}]}}`, `kind ""`},
		"null":                    {`null`, "undecodable pod"},
		"a list":                  {`[]`, "undecodable pod"},
		"no metadata":             {`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{}]}}`, "field metadata is missing"},
		"metadata of a type":      {`{"apiVersion": "v1", "kind": "Pod", "metadata": 1, "spec": {"containers": [{}]}}`, "metadata"},
		"no spec":                 {`{` + head + `}`, "field spec is missing"},
		"spec is null":            {`{` + head + `, "spec": null}`, "field spec is missing"},
		"spec of a type":          {`{` + head + `, "spec": "x"}`, "spec"},
		"no containers":           {`{` + head + `, "spec": {}}`, "field spec.containers is missing or empty"},
		"empty containers":        {`{` + head + `, "spec": {"containers": []}}`, "field spec.containers is missing or empty"},
		"containers is a map":     {`{` + head + `, "spec": {"containers": {}}}`, "spec: containers: {, want a list"},
		"containers of a type":    {`{` + head + `, "spec": {"containers": ["x"]}}`, "spec: containers[0]: string, want an object"},
		"nodeSelector of a type":  {`{` + head + `, "spec": {"nodeSelector": {"a": 1}, "containers": [{}]}}`, "spec.nodeSelector"},
		"tolerations of a type":   {`{` + head + `, "spec": {"tolerations": {}, "containers": [{}]}}`, "spec.tolerations"},
		"runtimeClassName's type": {`{` + head + `, "spec": {"runtimeClassName": {}, "containers": [{}]}}`, "spec.runtimeClassName"},
		"labels of a type":        {`{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": []}, "spec": {"containers": [{}]}}`, "metadata.labels"},
		"a quantity that is none": {`{` + head + `, "spec": {"overhead": {"cpu": "much"}, "containers": [{}]}}`, "quantit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, _ := newHandler(t)
			got := answer(t, post(t, &Endpoint{Handler: handler, Log: logr.Discard()}, review("untrusted", json.RawMessage(test.object))))
			if got.Allowed || got.UID != "u-1" || got.Result.Code != 400 || !strings.Contains(got.Result.Message, test.want) {
				t.Errorf("got %+v, want 400 that says %q", got.Result, test.want)
			}
		})
	}
}

// TestKeysAreCaseSensitive: the policy and the patch know `spec` only, so the decoder
// may not take `Spec` for it.
func TestKeysAreCaseSensitive(t *testing.T) {
	t.Parallel()
	const head = `"apiVersion": "v1", "kind": "Pod", "metadata": {}`
	for name, object := range map[string]string{
		"Spec":             `{` + head + `, "Spec": {"containers": [{"name": "c"}]}}`,
		"spec.Containers":  `{` + head + `, "spec": {"Containers": [{"name": "c"}]}}`,
		"RuntimeClassName": `{` + head + `, "spec": {"RuntimeClassName": 7, "containers": [{"name": "c"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decoded, err := decodePod(asPod(t, []byte(object)))
			if wantOK := name == "RuntimeClassName"; (err == nil) != wantOK {
				t.Errorf("got %+v, %v", decoded, err)
			}
		})
	}
}

// TestTooManyAtOnce: one more than the bound is refused as retryable, and the next is
// answered when one has gone.
func TestTooManyAtOnce(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	endpoint := &Endpoint{Log: logr.Discard(), MaxInFlight: 1, Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		begun <- struct{}{}
		<-release
		return admission.Allowed("")
	})}
	body := review("untrusted", json.RawMessage(`{}`))
	first := make(chan *admissionv1.AdmissionResponse)
	go func() { first <- answer(t, post(t, endpoint, body)) }()
	<-begun
	got := answer(t, post(t, endpoint, body))
	if got.Allowed || got.UID != "u-1" || got.Result.Code != http.StatusTooManyRequests || got.Result.Details.RetryAfterSeconds == 0 {
		t.Errorf("got %+v, want 429 that says when to come back", got)
	}
	close(release)
	if got := <-first; !got.Allowed {
		t.Errorf("the first got %+v", got)
	}
	go func() { <-begun }()
	if got := answer(t, post(t, endpoint, body)); !got.Allowed {
		t.Errorf("the next got %+v", got)
	}
}

// TestNothingOfABodyIsKept: its buffer is the next review's.
func TestNothingOfABodyIsKept(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{
		largeReview("untrusted", 1, "api"),
		bytes.Replace(largeReview("untrusted", 1, "api"), []byte(`"operation":"CREATE"`), []byte(`"operation":"UPDATE"`), 1),
		bytes.Replace(largeReview("untrusted", 1, "api"), []byte(`"oldObject":null`), []byte(`"oldObject":{"a":["b"]}`), 1),
	} {
		wantReview, wantPod, err := decodeReview(bytes.Clone(body))
		if err != nil {
			t.Fatal(err)
		}
		review, pod, err := decodeReview(body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range body {
			body[i] = '!'
		}
		if diff := cmp.Diff(wantReview, review); diff != "" {
			t.Error(diff)
		}
		if !reflect.DeepEqual(wantPod, pod) {
			t.Errorf("the pod changed with the body it was read from: %+v", pod)
		}
	}
}
