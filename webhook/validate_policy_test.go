package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// newPolicyValidator judges over the cluster of the fixtures, with files beside the
// shipped ones.
func newPolicyValidator(t *testing.T, engine *policies.Engine, others policies.Modules) (*PolicyValidator, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return NewPolicyValidator(PolicyOptions{
		Engine:  engine,
		Files:   func() (policies.Modules, error) { return policies.Shipped().Extend(others) },
		Metrics: metrics,
		Log:     logr.Discard(),
	}), registry
}

// policyReview is of a ConfigMap "team" that carries the label.
func policyReview(t *testing.T, data map[string]string, edits ...func(*corev1.ConfigMap)) admission.Request {
	t.Helper()
	c := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "router", Labels: map[string]string{catalog.LabelPolicy: catalog.PolicyLabelValue}},
		Data:       data,
	}
	for _, edit := range edits {
		edit(c)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Update, Namespace: "router", Name: "team", Object: runtime.RawExtension{Raw: raw},
	}}
}

const (
	denial = "package router.custom\n\ndenials contains \"no\" if input.pod.metadata.labels.team == \"x\"\n"
	typing = "package router.custom\n\ndenials contains \"no\" if input.pod.spec.hostNetwrok\n"
)

func TestPolicyConfigMaps(t *testing.T) {
	t.Parallel()
	unsafe := func(class string) string {
		return "package router\n\ndecision := {\"action\": \"route\", \"trust\": \"untrusted\", \"runtimeClassName\": \"" + class + "\", \"reasons\": [\"so\"]}\n"
	}
	tests := map[string]struct {
		others  policies.Modules // instead of the shipped ones, where they define the entry point
		data    map[string]string
		edit    func(*corev1.ConfigMap)
		refused []string // in the message
		warned  []string
	}{
		"good":                     {data: map[string]string{"a.rego": denial}},
		"misspelt field":           {data: map[string]string{"a.rego": typing}, refused: []string{"team/a.rego:3:", "undefined ref: input.pod.spec.hostNetwrok", "(did you mean hostNetwork?)"}},
		"syntax":                   {data: map[string]string{"a.rego": "package router.custom\n\ndenials contains"}, refused: []string{"team/a.rego:3:", "rego_parse_error"}},
		"two faults":               {data: map[string]string{"a.rego": typing, "b.rego": strings.ReplaceAll(typing, "hostNetwrok", "hostPIDD")}, refused: []string{"team/a.rego:3:", "; team/b.rego:3:"}},
		"failing test":             {data: map[string]string{"a.rego": denial, "a_test.rego": "package a_test\n\ntest_it if data.router.custom.denials == {\"yes\"}\n"}, refused: []string{"team/a_test.rego:3:1: data.a_test.test_it failed"}},
		"a builtin that is no use": {data: map[string]string{"a.rego": "package router.custom\n\ndenials contains \"no\" if http.send({})\n"}, refused: []string{"team/a.rego:3:", "a decision must not depend on the network"}},
		"class that is not there":  {others: policies.Modules{}, data: map[string]string{"a.rego": unsafe("gvisro")}, refused: []string{"team/a.rego:3:1:", `runtime class "gvisro" does not exist`, "look the class up"}},
		"below the floor":          {others: policies.Modules{}, data: map[string]string{"a.rego": unsafe("crun")}, refused: []string{"team/a.rego:3:1:", "below the floor", "no policy goes below the floor"}},
		"key that is no file":      {data: map[string]string{"a.rego": denial, "b.reg": typing}, refused: []string{`team/b.reg:1: key "b.reg" of ConfigMap team does not end in .rego`, "rename the key"}},
		"binary key":               {data: map[string]string{"a.rego": denial}, edit: func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"b.rego": {0}} }, refused: []string{`key "b.rego" of ConfigMap team is binary`}},
		"no key":                   {warned: []string{"holds no file"}},
		"too large": {
			data:    map[string]string{"a.rego": denial + strings.Repeat("# x\n", 150_000), "b.rego": "package b\n" + strings.Repeat("# x\n", 150_000)},
			refused: []string{"ConfigMap team has 1200", "bytes of data, and 1048576 is the most"},
		},
		"too large with the others": {
			others: policies.Modules{"other/a.rego": "package other\n" + strings.Repeat("# x\n", 150_000)},
			data:   map[string]string{"a.rego": "package a\n" + strings.Repeat("# x\n", 150_000)}, refused: []string{"the policy has 1200", "bytes in 2 files, and 1048576 is the most"},
		},
		"no policy":                  {data: map[string]string{"a.rego": typing}, edit: func(c *corev1.ConfigMap) { c.Labels = nil }},
		"labelled otherwise":         {data: map[string]string{"a.rego": typing}, edit: func(c *corev1.ConfigMap) { c.Labels[catalog.LabelPolicy] = "false" }},
		"what it mends":              {others: policies.Modules{"team/a.rego": typing}, data: map[string]string{"a.rego": denial}},
		"what it breaks elsewhere":   {others: policies.Modules{"other/a_test.rego": "package other_test\n\ntest_none if count(data.router.custom.denials) == 0 with input.pod.metadata.labels.team as \"x\"\n"}, data: map[string]string{"a.rego": denial}, refused: []string{"other/a_test.rego:3:1: data.other_test.test_none failed"}},
		"what was broken before":     {others: policies.Modules{"other/a.rego": typing}, data: map[string]string{"a.rego": denial}, warned: []string{"not put in force, as before this change: other/a.rego:3:"}},
		"broken, and another before": {others: policies.Modules{"other/a.rego": typing}, data: map[string]string{"a.rego": typing}, refused: []string{"other/a.rego:3:", "team/a.rego:3:"}},
	}
	engine := checkedEngine(t)
	before, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			validator, registry := newPolicyValidator(t, engine, test.others)
			if strings.Contains(test.data["a.rego"], "package router\n") {
				validator.Files = func() (policies.Modules, error) { return policies.Modules{}, nil }
			}
			edits := []func(*corev1.ConfigMap){}
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			response := validator.Handle(t.Context(), policyReview(t, test.data, edits...))
			if response.Allowed != (test.refused == nil) {
				t.Fatalf("allowed: %t, %+v", response.Allowed, response.Result)
			}
			if len(response.Warnings) != len(test.warned) {
				t.Errorf("warnings %q", response.Warnings)
			}
			said := strings.Join(response.Warnings, "\n")
			if !response.Allowed {
				said = response.Result.Message
				if response.Result.Code != http.StatusForbidden || len(said) > maxMessage || strings.Contains(said, "\n") {
					t.Errorf("%d, %d bytes: %s", response.Result.Code, len(said), said)
				}
				if got := counted(t, registry)["validations_total mode=enforce outcome=deny resource=policies"]; got != 1 {
					t.Errorf("counted %v", counted(t, registry))
				}
			}
			for _, want := range append(test.refused, test.warned...) {
				if !strings.Contains(said, want) {
					t.Errorf("lacks %q: %s", want, said)
				}
			}
			if after, err := engine.Snapshot(); after != before || err != nil {
				t.Errorf("a policy that was only judged is in force: %v", err)
			}
		})
	}
}

// checkedEngine is as `serve` makes one.
func checkedEngine(t *testing.T) *policies.Engine {
	t.Helper()
	cluster, err := catalog.ReadManifests([]string{filepath.Join(fixtures, "cluster.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := policies.NewEngine(policies.WithCheck(CheckPolicy))
	if err := errors.Join(engine.SetCatalog(t.Context(), cluster.Catalog()), engine.Load(t.Context(), policies.Shipped(), policies.DefaultConfig())); err != nil {
		t.Fatal(err)
	}
	return engine
}

// TestLoadChecksTheFloor: what `policy check` refuses, a load refuses.
func TestLoadChecksTheFloor(t *testing.T) {
	t.Parallel()
	engine := checkedEngine(t)
	if err := engine.Load(t.Context(), policies.Shipped(), policies.DefaultConfig()); err != nil {
		t.Errorf("the shipped policy: %v", err)
	}
	before, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]string{"crun": "below the floor", "gvisro": "does not exist", "": "below the floor"} {
		modules := policies.Modules{"p.rego": `package router

decision := {"action": "route", "trust": "untrusted", "runtimeClassName": "` + class + `", "reasons": ["so"]}
`}
		err := engine.Load(t.Context(), modules, policies.DefaultConfig())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.rego:3") {
			t.Errorf("class %q: %v", class, err)
		}
	}
	if after, err := engine.Snapshot(); after != before || err != nil {
		t.Errorf("what was in force did not stay: %v", err)
	}
	// Before there is a catalog every class is missing.
	unknown := policies.NewEngine(policies.WithCheck(CheckPolicy))
	if err := unknown.Load(t.Context(), policies.Modules{"p.rego": `package router

decision := {"action": "route", "trust": "untrusted", "runtimeClassName": "gvisor", "reasons": ["so"]}
`}, policies.DefaultConfig()); err != nil {
		t.Errorf("without a catalog: %v", err)
	}
}

func TestPolicyReviewsThatAreNotJudged(t *testing.T) {
	t.Parallel()
	validator, _ := newPolicyValidator(t, checkedEngine(t), nil)
	for operation, subresource := range map[admissionv1.Operation]string{admissionv1.Delete: "", admissionv1.Connect: "", admissionv1.Update: "status"} {
		request := policyReview(t, map[string]string{"a.rego": typing})
		request.Operation, request.SubResource = operation, subresource
		if response := validator.Handle(t.Context(), request); !response.Allowed {
			t.Errorf("%s %q: %+v", operation, subresource, response.Result)
		}
	}
	request := policyReview(t, nil)
	request.Object.Raw = []byte(`{"data": []}`)
	if response := validator.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("undecodable: %+v", response.Result)
	}
	validator.Files = func() (policies.Modules, error) { return nil, errors.New("the store is on fire") }
	if response := validator.Handle(t.Context(), policyReview(t, map[string]string{"a.rego": denial})); response.Allowed ||
		response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "on fire") {
		t.Errorf("files that cannot be read: %+v", response.Result)
	}
}

// TestOnePolicyAtATime: whoever comes second is told to come again, and is not queued.
func TestOnePolicyAtATime(t *testing.T) {
	t.Parallel()
	validator, registry := newPolicyValidator(t, checkedEngine(t), nil)
	files := validator.Files
	begun, release := make(chan struct{}), make(chan struct{})
	validator.Files = func() (policies.Modules, error) {
		close(begun)
		<-release
		return files()
	}
	first := make(chan admission.Response)
	request := policyReview(t, map[string]string{"a.rego": denial})
	go func() { first <- validator.Handle(t.Context(), request) }()
	<-begun
	second := validator.Handle(t.Context(), request)
	if second.Allowed || second.Result.Code != http.StatusTooManyRequests || second.Result.Details.RetryAfterSeconds == 0 || !strings.Contains(second.Result.Message, "try again") {
		t.Errorf("second: %+v", second.Result)
	}
	close(release)
	if response := <-first; !response.Allowed {
		t.Errorf("first: %+v", response.Result)
	}
	validator.Files = files
	if response := validator.Handle(t.Context(), request); !response.Allowed {
		t.Errorf("third: %+v", response.Result)
	}
	if got := counted(t, registry)["errors_total kind=busy"]; got != 1 {
		t.Errorf("counted %v", counted(t, registry))
	}
}

// TestPolicyReviewHasADeadline: tests that take long are a person's time.
func TestPolicyReviewHasADeadline(t *testing.T) {
	t.Parallel()
	validator, _ := newPolicyValidator(t, checkedEngine(t), nil)
	validator.deadline = time.Millisecond
	response := validator.Handle(t.Context(), policyReview(t, map[string]string{"a.rego": denial}))
	if response.Allowed || response.Result.Code != http.StatusGatewayTimeout || !strings.Contains(response.Result.Message, "policy check") {
		t.Errorf("got %+v", response.Result)
	}
}

// TestProblemsFitAMessage whatever their number and length.
func TestProblemsFitAMessage(t *testing.T) {
	t.Parallel()
	few := []policies.Problem{{File: "a.rego", Line: 1, Message: "one"}, {File: "b.rego", Line: 2, Message: "two"}}
	if got := list(few); got != "a.rego:1: one; b.rego:2: two" {
		t.Error(got)
	}
	many := make([]policies.Problem, 500)
	for i := range many {
		many[i] = policies.Problem{File: "a.rego", Line: i + 1, Message: strings.Repeat("x", 90)}
	}
	got := list(many)
	if len("runtimeclass-router: "+got) >= maxMessage || !strings.HasSuffix(got, " more, which runtimeclass-router policy check lists") || !strings.HasPrefix(got, "a.rego:1: xx") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := list([]policies.Problem{{Message: strings.Repeat("é", 2000)}}); len(got) >= maxMessage || !strings.HasSuffix(got, "é...") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
