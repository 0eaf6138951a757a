package chart

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

var update = flag.Bool("update", false, "write promql/testdata anew")

// TestMonitoring has the code of Prometheus and its operator look at what the chart gives
// them. It is a module of its own, see promql/doc.go; what it reads is kept in step here.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	golden(t, "metrics.json", registered(t))
	var documents []string
	for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
		manifests, err := template(t, "{metrics: {rules: {enabled: "+map[bool]string{true: "true", false: "false"}[kind == "PodMonitor"]+"}, monitor: {kind: "+kind+"}}}")
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(manifests, "\n---\n") {
			if strings.Contains(document, "\napiVersion: monitoring.coreos.com/v1\n") {
				documents = append(documents, strings.TrimSpace(document))
			}
		}
	}
	golden(t, "monitoring.yaml", strings.Join(documents, "\n---\n")+"\n")
	if t.Failed() {
		return
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	cmd.Dir = "promql"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go test in promql: %v\n%s", err, out)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("promql", "testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; go test ./test/chart -run TestMonitoring -update writes it (-want +got):\n%s", path, diff)
	}
}

// registered are the labels of the product's metrics by name, as JSON.
func registered(t *testing.T) string {
	t.Helper()
	registry := &descriptions{labels: map[string][]string{}}
	if _, err := webhook.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	for _, collector := range []prometheus.Collector{
		webhook.NewMemoryCollector(func() policies.Memory { return policies.Memory{} }),
		webhook.NewAbandonedCollector(func() int { return 0 }),
		webhook.NewWatchCollector(func() map[string]time.Duration { return nil }),
		webhook.NewFaultCollector(func() map[string]int { return nil }),
		&certs.Certificates{},
		&registration.Armer{},
	} {
		if err := registry.Register(collector); err != nil {
			t.Fatal(err)
		}
	}
	if len(registry.labels) < 15 {
		t.Errorf("only %v", slices.Sorted(maps.Keys(registry.labels)))
	}
	raw, err := json.MarshalIndent(registry.labels, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// descriptions is a registry that notes what is registered.
type descriptions struct {
	prometheus.Registerer
	labels map[string][]string
}

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func (d *descriptions) Register(collector prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		collector.Describe(descs)
	}()
	for desc := range descs {
		match := described.FindStringSubmatch(desc.String())
		d.labels[match[1]] = slices.DeleteFunc(strings.Split(match[2], ","), func(label string) bool { return label == "" })
	}
	return nil
}
