package policies

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

func plainInput() Input {
	return Input{
		Namespace: catalog.Namespace{Name: "ns", Labels: map[string]string{catalog.LabelTrust: "untrusted"}},
		Pod:       mustRead(plainPod),
	}
}

const plainPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [{"name": "c"}]}}`

func mustRead(raw string) *Pod {
	pod, err := ReadPod([]byte(raw))
	if err != nil {
		panic(err)
	}
	return pod
}

func snapshotOf(t *testing.T, modules Modules) *Snapshot {
	t.Helper()
	engine := NewEngine()
	if err := engine.Load(t.Context(), modules, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDecideTimesOut also holds for builtins that run past their deadline.
func TestDecideTimesOut(t *testing.T) {
	t.Parallel()
	slow := `{"action": "keep", "trust": "trusted"} if {
	input.pod.metadata.name == "slow"
	count([1 | some i in numbers.range(1, 3000); some j in numbers.range(1, 3000); i == j]) > 0
} else := ` + keepTrusted
	s := snapshotOf(t, answer(slow))
	in := plainInput()
	in.Pod = mustRead(strings.Replace(plainPod, `"metadata": {}`, `"metadata": {"name": "slow"}`, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Decide(ctx, in)
	var fault *Fault
	if !errors.As(err, &fault) || fault.Kind != TimedOut || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestSwapUnderLoad: every decision comes from one policy and one catalog.
func TestSwapUnderLoad(t *testing.T) {
	t.Parallel()
	engine := NewEngine()
	if err := engine.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	with := func(name string) *catalog.Catalog {
		return catalog.Build([]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runsc"}}, nil)
	}
	catalogs := []*catalog.Catalog{with("a"), with("b")}
	if err := engine.SetCatalog(t.Context(), catalogs[0]); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s, err := engine.Snapshot()
				if err != nil {
					t.Error(err)
					return
				}
				d, err := s.Decide(context.Background(), plainInput())
				if err != nil {
					t.Error(err)
					return
				}
				if s.Catalog().RuntimeClass(d.RuntimeClassName) == nil {
					t.Errorf("decided for %s, which this catalog lacks", d.RuntimeClassName)
				}
			}
		})
	}
	for i := range 100 {
		if err := engine.SetCatalog(t.Context(), catalogs[i%2]); err != nil {
			t.Error(err)
		}
	}
	close(done)
	group.Wait()
}

func TestSetCatalogBeforeLoad(t *testing.T) {
	t.Parallel()
	engine := NewEngine()
	c := catalog.Build([]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Handler: "runsc"}}, nil)
	if err := engine.SetCatalog(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := engine.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Snapshot()
	if err != nil || s.Catalog() != c {
		t.Errorf("the catalog was lost: %v", err)
	}
}

// TestInput: the random name of the token's volume does not reach the policy, and
// nothing else is taken out with it.
func TestInput(t *testing.T) {
	t.Parallel()
	in := plainInput()
	in.Pod = mustRead(`{"metadata": {"name": "p", "managedFields": [{}]}, "spec": {
		"volumes": [
			{"name": "kube-api-access-x1", "projected": {"sources": []}},
			{"name": "kube-api-access-evil", "hostPath": {"path": "/"}},
			{"name": "data", "emptyDir": {}}],
		"initContainers": [{"name": "i", "volumeMounts": [{"name": "kube-api-access-x1", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}],
		"containers": [{"name": "c", "volumeMounts": [
			{"name": "data", "mountPath": "/data"},
			{"name": "kube-api-access-evil", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
			{"name": "kube-api-access-x1", "mountPath": "/elsewhere"},
			{"name": "kube-api-access-x1", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}]}}`)
	value, err := in.value(catalog.Build(nil, nil), everything)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Pod any }
	if err := json.Unmarshal([]byte(value.String()), &got); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal([]byte(`{"metadata": {"name": "p"}, "spec": {
		"volumes": [{"name": "kube-api-access-evil", "hostPath": {"path": "/"}}, {"name": "data", "emptyDir": {}}],
		"initContainers": [{"name": "i"}],
		"containers": [{"name": "c", "volumeMounts": [
			{"name": "data", "mountPath": "/data"},
			{"name": "kube-api-access-evil", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
			{"name": "kube-api-access-x1", "mountPath": "/elsewhere"}]}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Pod); diff != "" {
		t.Error(diff)
	}
}
