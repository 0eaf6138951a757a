package webhook

import (
	"context"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// decodeReview decodes of a review what handlers read, in one pass. A pod that is to be
// created is split on the way, and its bytes are left behind; other objects stay bytes.
func decodeReview(body []byte) (admissionv1.AdmissionReview, *policies.Pod, error) {
	// Names that are given twice cost a set of names for each object to find; of two, the
	// last counts, as in the API server.
	twice := jsontext.AllowDuplicateNames(true)
	var read reviewRead
	read.Request.split = true
	err := jsonv2.Unmarshal(body, &read, twice)
	if err != nil {
		// A pod that cannot be split is the handler's to complain of, under the review's uid.
		read = reviewRead{}
		if err := jsonv2.Unmarshal(body, &read, twice); err != nil {
			return admissionv1.AdmissionReview{}, nil, err
		}
	}
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: read.APIVersion, Kind: read.Kind}}
	r := &read.Request
	if !r.given {
		return review, nil, nil
	}
	review.Request = &admissionv1.AdmissionRequest{
		UID: r.UID, Kind: r.Kind, SubResource: r.SubResource, Name: r.Name, Namespace: r.Namespace, Operation: r.Operation,
		UserInfo: r.UserInfo, DryRun: r.DryRun,
		Object: runtime.RawExtension{Raw: r.object}, OldObject: runtime.RawExtension{Raw: r.OldObject},
	}
	return review, r.pod, nil
}

type reviewRead struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Request    requestRead `json:"request"`
}

// requestRead is the request of a review. The API server writes its fields in an order in
// which the object comes after what says that it is a new pod.
type requestRead struct {
	UID         types.UID                 `json:"uid"`
	Kind        metav1.GroupVersionKind   `json:"kind"`
	SubResource string                    `json:"subResource"`
	Name        string                    `json:"name"`
	Namespace   string                    `json:"namespace"`
	Operation   admissionv1.Operation     `json:"operation"`
	UserInfo    authenticationv1.UserInfo `json:"userInfo"`
	OldObject   jsontext.Value            `json:"oldObject"`
	DryRun      *bool                     `json:"dryRun"`

	given, split bool
	object       jsontext.Value
	pod          *policies.Pod
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom of the second version of encoding/json.
func (r *requestRead) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	if decoder.PeekKind() == jsontext.KindNull {
		return decoder.SkipValue()
	}
	type plain requestRead
	fields := struct {
		*plain
		Object objectRead `json:"object"`
	}{plain: (*plain)(r), Object: objectRead{r}}
	r.given = true
	return jsonv2.UnmarshalDecode(decoder, &fields)
}

// objectRead is the object of a request.
type objectRead struct{ request *requestRead }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of the second version of encoding/json.
func (o *objectRead) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	r := o.request
	if r.split && r.Operation == admissionv1.Create && r.SubResource == "" && r.Kind == podKind {
		r.pod = &policies.Pod{}
		return jsonv2.UnmarshalDecode(decoder, r.pod)
	}
	return jsonv2.UnmarshalDecode(decoder, &r.object)
}

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// podOf is what decodeReview has split, handed to the handlers of an Endpoint.
type podOf struct{}

func withPod(ctx context.Context, pod *policies.Pod) context.Context {
	if pod == nil {
		return ctx
	}
	return context.WithValue(ctx, podOf{}, pod)
}

// objectPod is the pod of a request: as it was split with the review, or from its bytes.
func objectPod(ctx context.Context, raw []byte) (*policies.Pod, error) {
	if pod, ok := ctx.Value(podOf{}).(*policies.Pod); ok {
		return pod, nil
	}
	return readPod(raw)
}
