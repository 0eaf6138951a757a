package main

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// called is how the API server tells that a webhook did not answer.
func called(how string) error {
	return apierrors.NewInternalError(errors.New(`failed calling webhook "pods.runtimeclass-router.io": failed to call webhook: Post "https://runtimeclass-router.runtimeclass-router.svc:443/mutate-pod?timeout=3s": ` + how))
}

type timedOut struct{ error }

func (timedOut) Timeout() bool { return true }

func TestCauseOf(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	transport := func(err error) error { return &url.Error{Op: "Post", URL: "https://127.0.0.1:1", Err: err} }
	for name, test := range map[string]struct {
		err  error
		want cause
	}{
		"refused":                 {transport(errors.New("dial tcp 127.0.0.1:1: connect: connection refused")), apiServer},
		"ended":                   {transport(io.EOF), apiServer},
		"ends":                    {apierrors.NewServiceUnavailable("apiserver is shutting down"), apiServer},
		"starts":                  {apierrors.NewForbidden(pods, "a", errors.New("not yet ready to handle request")), apiServer},
		"no answer":               {transport(timedOut{errors.New("context deadline exceeded")}), ours},
		"webhook gone":            {called("EOF"), broken},
		"webhook not there":       {called("dial tcp 127.0.0.1:2: connect: connection refused"), broken},
		"webhook reset":           {called("read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer"), broken},
		"webhook slow":            {called("context deadline exceeded"), ours},
		"certificate not trusted": {called("tls: failed to verify certificate: x509: certificate signed by unknown authority"), ours},
		"denied":                  {apierrors.NewForbidden(pods, "a", errors.New("runtimeclass-router: no sandbox")), ours},
		"too many":                {apierrors.NewTooManyRequests("wait", 1), ours},
		"policy error":            {&apierrors.StatusError{ErrStatus: apierrors.NewInternalError(errors.New("policy")).ErrStatus}, ours},
		"anything":                {errors.New("anything"), ours},
	} {
		if got := causeOf(test.err); got != test.want {
			t.Errorf("%s: cause %d, want %d", name, got, test.want)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	killed := newWindow(&disturbance{excuses: []cause{broken}}, stack.ServiceEvents{Cut: 1})
	killed.open = 7
	for _, call := range []struct{ err, wrong error }{
		{nil, nil},
		{called("EOF"), nil}, {called("EOF"), nil}, {called("EOF"), nil}, {called("EOF"), nil},
		{&url.Error{Err: io.EOF}, nil}, // the API server is not excused here
		{nil, errors.New("no class")},
	} {
		killed.end(time.Millisecond, call.err, call.wrong)
	}
	killed.close(stack.ServiceEvents{Cut: 2, Ended: 1, Refused: 1})
	got := []int{killed.open, killed.Created(), killed.InFlight(), killed.Late(), killed.APIServer(), killed.Ours(), killed.Wrong()}
	// Four calls broke, and three connections did.
	for i, want := range []int{0, 1, 1, 2, 0, 2, 1} {
		if got[i] != want {
			t.Fatalf("open, created, in flight, late, API server, ours, wrong: %d", got)
		}
	}
	if faults := (&report{Windows: []*window{killed}}).faults(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "no class") {
		t.Errorf("faults: %v", faults)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := func() *corev1.Pod {
		pod, _, _ := newPod(0)
		pod.Annotations = map[string]string{catalog.AnnotationPolicyRevision: "r"}
		pod.Spec.RuntimeClassName = ptr.To("gvisor")
		pod.Spec.NodeSelector = map[string]string{"example.com/pool": "gvisor"}
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		return pod
	}
	for name, change := range map[string]func(*corev1.Pod){
		"":            func(*corev1.Pod) {},
		"no class":    func(p *corev1.Pod) { p.Spec.RuntimeClassName = nil },
		"no selector": func(p *corev1.Pod) { p.Spec.NodeSelector = nil },
		"no overhead": func(p *corev1.Pod) { p.Spec.Overhead = nil },
		"unrouted":    func(p *corev1.Pod) { p.Annotations = nil },
		"fallback":    func(p *corev1.Pod) { p.Annotations[catalog.AnnotationFallback] = "gvisor" },
	} {
		pod := good()
		change(pod)
		if err := check(pod, []string{"gvisor"}); (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	r := &report{Clients: 16}
	for i := range disturbances {
		w := newWindow(&disturbances[i], stack.ServiceEvents{})
		w.open, w.Note = 1, "took place"
		w.end(time.Second, nil, nil)
		w.close(stack.ServiceEvents{})
		r.Windows = append(r.Windows, w)
	}
	page, table, err := render(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table) || strings.Count(table, "\n") != len(disturbances)+3 || !strings.Contains(table, "| **in all** | 0 | 7 | 0 | 0 | 0 | 0 | 0 | |") {
		t.Errorf("table:\n%s", table)
	}
	if strings.Contains(string(page), "<no value>") || len(r.faults()) > 0 {
		t.Errorf("faults %v; page:\n%s", r.faults(), page)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-pods", "0"}, {"-clients", "0"}, {"-replicas", "1"}, {"page"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	if o, err := parse(nil); err != nil || o.pods != 20000 || o.clients != 16 || o.replicas != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
