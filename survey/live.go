package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// podPages is how many pods are asked for at once, as kubectl does.
const podPages = 500

// Pods lists the pods of a cluster, page by page.
type Pods struct {
	client              rest.Interface
	namespace, selector string
	notes               io.Writer

	err error // that ended the list
}

// NewPods lists the pods of one namespace or, where it is empty, of all, with the labels of a
// selector. Notes on what the list may lack go to notes.
func NewPods(config *rest.Config, namespace, selector string, notes io.Writer) (*Pods, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Pods{client: client.CoreV1().RESTClient(), namespace: namespace, selector: selector, notes: notes}, nil
}

// podPage is a PodList whose pods are left as they were sent, so that fields which this
// build does not know stay in them.
type podPage struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []runtime.Unknown `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (p *podPage) DeepCopyObject() runtime.Object {
	c := *p
	p.DeepCopyInto(&c.ListMeta)
	c.Items = make([]runtime.Unknown, len(p.Items))
	for i := range p.Items {
		p.Items[i].DeepCopyInto(&c.Items[i])
	}
	return &c
}

// Items yields each pod. One page is looked at while the next is read, and no more are
// held. What ends the list early is left in [Pods.Err].
func (l *Pods) Items(ctx context.Context, bar Progress) iter.Seq2[*Item, error] {
	enough := errors.New("the rest is not asked for")
	return func(yield func(*Item, error) bool) {
		var read int64
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			page, err := l.page(ctx, options)
			if err == nil && options.Continue == "" && page.RemainingItemCount != nil {
				bar.Size(int64(len(page.Items)) + *page.RemainingItemCount)
			}
			return page, err
		})
		pages.PageSize, pages.PageBufferSize = podPages, 0
		err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: l.selector}, func(object runtime.Object) error {
			read++
			bar.At(read)
			if pod, ok := object.(*runtime.Unknown); !ok || !yield(&Item{documents: livePod(pod.Raw)}, nil) {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			l.err = fmt.Errorf("list pods: %w", err)
		}
	}
}

// Err is what ended the list early.
func (l *Pods) Err() error { return l.err }

// page reads one page. An API server remembers the state that a list began with for some
// minutes, and then offers to go on with the state of now, from the pod where it stopped:
// nothing is counted twice.
func (l *Pods) page(ctx context.Context, options metav1.ListOptions) (*podPage, error) {
	for {
		result := l.client.Get().NamespaceIfScoped(l.namespace, l.namespace != "").Resource("pods").
			VersionedParams(&options, scheme.ParameterCodec).
			SetHeader("Accept", runtime.ContentTypeJSON).
			Do(ctx)
		err := result.Error()
		if options.Continue != "" && apierrors.IsResourceExpired(err) {
			next := continuation(err)
			if next == "" || next == options.Continue {
				return &podPage{}, fmt.Errorf("%w: the list took longer than the API server remembers its state: ask for less at once, with -n or -l", err)
			}
			fmt.Fprintln(l.notes, "note: the list took longer than the API server remembers its state: pods that were created meanwhile may be missing")
			options.Continue = next
			continue
		}
		if err != nil {
			return &podPage{}, err
		}
		body, err := result.Raw()
		if err != nil {
			return &podPage{}, err
		}
		page := &podPage{}
		return page, json.Unmarshal(body, page)
	}
}

// continuation is where a list that has expired may go on; empty if the server does not say.
func continuation(expired error) string {
	var status apierrors.APIStatus
	if !errors.As(expired, &status) {
		return ""
	}
	return status.Status().Continue
}

// livePod decodes the pod when it is looked at.
func livePod(raw json.RawMessage) iter.Seq2[*catalog.Document, error] {
	return func(yield func(*catalog.Document, error) bool) { yield(Live(raw)) }
}

// Live is a cluster's pod as a document. It decodes no more than whose pod it is: the rest
// is read by what decides.
func Live(raw json.RawMessage) (*catalog.Document, error) {
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("the cluster: a pod: %w", err)
	}
	return &catalog.Document{File: "the cluster", GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Raw: raw, Object: object}, nil
}
