package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

//go:embed cluster.yaml
var clusterManifest []byte

// harness is the control plane with the product and what it is compared with.
type harness struct {
	*options
	*stack.Stack

	scratch     string
	certificate *certificate
	api         *http.Client // an administrator's
	direct      *http.Client // to webhooks, for what is not timed
	apiServer   int          // process ID
	// router serves the product by the bench's certificate; the API server reaches it, as it
	// does the baselines, through a Service.
	router    *router
	baselines map[string]*baseline

	pod       []byte
	timedPods int // for the page
	reviews   int
}

// newHarness starts everything; only stop ends it. The chart leaves the namespaces of
// exempt alone.
func newHarness(ctx context.Context, o *options, exempt []string) (_ *harness, err error) {
	h := &harness{options: o, baselines: map[string]*baseline{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.stop())
		}
	}()
	if h.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, err
	}
	manifest := filepath.Join(h.scratch, "cluster.yaml")
	if err := os.WriteFile(manifest, clusterManifest, 0o600); err != nil {
		return nil, err
	}
	if h.certificate, err = newCertificate(h.scratch); err != nil {
		return nil, err
	}
	h.direct = h.certificate.client(1)
	h.Stack, err = stack.Start(ctx, stack.Options{
		Progress: o.progress,
		Cluster:  []string{manifest},
		Values:   map[string]any{"exemptNamespaces": append([]string{serviceNamespace}, exempt...)},
	})
	if err != nil {
		return nil, err
	}
	if h.apiServer, err = h.PID(controlplane.APIServer); err != nil {
		return nil, err
	}
	if h.api, err = rest.HTTPClientFor(h.Config); err != nil {
		return nil, err
	}
	if h.pod, err = json.Marshal(benchPod()); err != nil {
		return nil, err
	}
	return h, h.createServiceNamespace(ctx)
}

// replaceRouter puts a router with the bench's certificate in the place of the stack's,
// whose certificate is not for a Service.
func (h *harness) replaceRouter(ctx context.Context) error {
	r, err := h.newRouter(ctx, "bench", nil)
	if err != nil {
		return err
	}
	if err := r.Start(ctx); err != nil {
		return err
	}
	h.router = r
	if err := h.pointChartAt(ctx, r); err != nil {
		return err
	}
	return h.Router.Stop()
}

// stop ends everything that runs, and removes the scratch folder.
func (h *harness) stop() error {
	var errs []error
	for _, b := range h.baselines {
		errs = append(errs, b.stop())
	}
	if h.router != nil {
		errs = append(errs, h.router.Stop())
	}
	if h.Stack != nil {
		errs = append(errs, h.Stop())
	}
	if h.scratch != "" {
		errs = append(errs, os.RemoveAll(h.scratch))
	}
	return errors.Join(errs...)
}

func (h *harness) say(format string, args ...any) {
	fmt.Fprintf(h.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// createNamespace creates one with a trust label, usable at once.
func (h *harness) createNamespace(ctx context.Context, name, trust string) error {
	return h.CreateNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{catalog.LabelTrust: trust}}})
}

// get reads what a process serves.
func get(ctx context.Context, c *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), err
}
