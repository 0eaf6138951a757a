package promql

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const dashboard = "../../../charts/runtimeclass-router/files/dashboards/runtimeclass-router.json"

// ofTargets are labels that Prometheus adds, beside the product's own.
var ofTargets = []string{"__name__", "job", "instance", "namespace", "pod", "le"}

// objects are the rendered ones, by kind. A field that a kind does not have fails the test.
func objects(t *testing.T) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("testdata/monitoring.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var meta struct{ Kind string }
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		object, known := map[string]any{
			monitoringv1.PrometheusRuleKind:  &monitoringv1.PrometheusRule{},
			monitoringv1.PodMonitorsKind:     &monitoringv1.PodMonitor{},
			monitoringv1.ServiceMonitorsKind: &monitoringv1.ServiceMonitor{},
		}[meta.Kind]
		if !known {
			t.Fatalf("kind %q", meta.Kind)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %v", meta.Kind, err)
		}
		found[meta.Kind] = object
	}
	return found
}

// alerts are the rules by name.
func alerts(t *testing.T) map[string]monitoringv1.Rule {
	t.Helper()
	found := map[string]monitoringv1.Rule{}
	for _, group := range objects(t)[monitoringv1.PrometheusRuleKind].(*monitoringv1.PrometheusRule).Spec.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

func TestObjectsDecode(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(maps.Keys(objects(t)))
	if want := []string{"PodMonitor", "PrometheusRule", "ServiceMonitor"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRulesAreValid asks what promtool check rules asks.
func TestRulesAreValid(t *testing.T) {
	t.Parallel()
	spec, err := yaml.Marshal(objects(t)[monitoringv1.PrometheusRuleKind].(*monitoringv1.PrometheusRule).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger()); len(errs) > 0 {
		t.Error(errs)
	}
	for name, rule := range alerts(t) {
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s: want a summary and a description", name)
		}
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", name, severity)
		}
	}
}

// TestMetricsExist: an alert on a metric that is not there never fires, and says nothing.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	known := map[string][]string{}
	raw, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		t.Fatal(err)
	}
	for name, rule := range alerts(t) {
		checkExpression(t, name, rule.Expr.String(), known)
	}
	panels := expressions(t)
	if len(panels) < 10 {
		t.Errorf("the dashboard has %d expressions", len(panels))
	}
	for title, exprs := range panels {
		for _, expr := range exprs {
			checkExpression(t, "panel "+title, expr, known)
		}
	}
}

// expressions are those of the dashboard by the titles of its panels, with its variables
// replaced as Grafana does.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$trust", "untrusted")
	found := map[string][]string{}
	for _, panel := range board.Panels {
		if panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %s: want a description and a query", panel.Title)
		}
		for _, target := range panel.Targets {
			found[panel.Title] = append(found[panel.Title], variables.Replace(target.Expr))
		}
	}
	return found
}

var histogram = regexp.MustCompile(`_(bucket|sum|count)$`)

func checkExpression(t *testing.T, where, text string, known map[string][]string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
			own, ok := known[selector.Name]
			if !ok {
				own, ok = known[histogram.ReplaceAllString(selector.Name, "")]
			}
			if !ok {
				t.Errorf("%s: the product has no metric %s", where, selector.Name)
			}
			for _, matcher := range selector.LabelMatchers {
				if !slices.Contains(own, matcher.Name) && !slices.Contains(ofTargets, matcher.Name) {
					t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
				}
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		aggregate, ok := node.(*parser.AggregateExpr)
		if !ok || aggregate.Without {
			return nil
		}
		for _, label := range aggregate.Grouping {
			if !slices.ContainsFunc(names, func(name string) bool {
				return slices.Contains(known[name], label) || slices.Contains(ofTargets, label)
			}) {
				t.Errorf("%s: none of %v has the label %s", where, names, label)
			}
		}
		return nil
	})
}
