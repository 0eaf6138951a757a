package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// How a pod is created.
const (
	dryRun = "?dryRun=All"
	stored = ""
)

// created is what is read of the pod that the API server answers with.
type created struct {
	Spec struct {
		RuntimeClassName *string             `json:"runtimeClassName"`
		NodeSelector     map[string]string   `json:"nodeSelector"`
		Tolerations      []corev1.Toleration `json:"tolerations"`
		Overhead         corev1.ResourceList `json:"overhead"`
	} `json:"spec"`
	Message string `json:"message"` // of a Status
}

// The route of an untrusted pod, as it is in cluster.yaml.
var (
	wantClass      = "gvisor"
	wantToleration = corev1.Toleration{Key: "example.com/sandbox", Operator: corev1.TolerationOpEqual, Value: wantClass, Effect: corev1.TaintEffectNoSchedule}
)

// check compares with the route that is expected.
func (c *created) check(routed bool) error {
	switch {
	case !routed && c.Spec.RuntimeClassName != nil:
		return fmt.Errorf("runtime class %q, want none", *c.Spec.RuntimeClassName)
	case !routed:
		return nil
	case c.Spec.RuntimeClassName == nil:
		return errors.New("no runtime class")
	case *c.Spec.RuntimeClassName != wantClass:
		return fmt.Errorf("runtime class %q, want %q", *c.Spec.RuntimeClassName, wantClass)
	case c.Spec.NodeSelector["example.com/pool"] != wantClass || c.Spec.NodeSelector["kubernetes.io/os"] != "linux":
		return fmt.Errorf("node selector %v", c.Spec.NodeSelector)
	case !slices.ContainsFunc(c.Spec.Tolerations, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, wantToleration) }):
		return fmt.Errorf("tolerations %v", c.Spec.Tolerations)
	case c.Spec.Overhead.Memory().String() != "64Mi" || c.Spec.Overhead.Cpu().String() != "50m":
		return fmt.Errorf("overhead %v", c.Spec.Overhead)
	}
	return nil
}

// serial makes names unique.
var serial atomic.Int64

// create creates one pod of a variant, checks it, and returns how long the API server
// took.
func (h *harness) create(ctx context.Context, v *variant, how string) (time.Duration, error) {
	n := serial.Add(1)
	body := bytes.Replace(h.pod, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"name":"bench-%d",`, n), 1)
	if v.fresh {
		body = changed(body, n)
	}
	url := strings.TrimSuffix(h.Config.Host, "/") + "/api/v1/namespaces/" + v.namespace() + "/pods" + how
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	began := time.Now()
	response, err := h.api.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	elapsed := time.Since(began)
	if err != nil {
		return 0, err
	}
	var pod created
	if err := json.Unmarshal(said, &pod); err != nil {
		return 0, fmt.Errorf("%s: %w", response.Status, err)
	}
	if response.StatusCode != http.StatusCreated {
		return 0, fmt.Errorf("%s: %s", response.Status, pod.Message)
	}
	return elapsed, pod.check(v.routed)
}

// load is what n calls, of some clients, took.
type load struct {
	latencies []time.Duration
	elapsed   time.Duration
}

func (l *load) rate() float64 { return float64(len(l.latencies)) / l.elapsed.Seconds() }

// drive makes n calls by that many clients, each of which makes one after the other. It
// ends at the first error.
func drive(ctx context.Context, n, clients int, call func(context.Context) (time.Duration, error)) (*load, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &load{latencies: make([]time.Duration, n)}
	var next atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for range clients {
		working.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				var err error
				if l.latencies[i], err = call(ctx); err != nil {
					cancel(err) // the first one stays
					return
				}
			}
		})
	}
	working.Wait()
	l.elapsed = time.Since(began)
	return l, context.Cause(ctx)
}
