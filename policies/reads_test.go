package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies/schemas"
)

// evaluated is the decision over the whole input.
func evaluated(t *testing.T, s *Snapshot, in Input) Decision {
	t.Helper()
	value, err := in.value(s.catalog, everything)
	if err != nil {
		t.Fatal(err)
	}
	results, err := s.query.Eval(t.Context(), rego.EvalParsedInput(value))
	if err != nil {
		t.Fatal(err)
	}
	decision, err := decodeDecision(results[0].Expressions[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

// TestContainerFields: whatever the other fields of a container hold, the shipped policy
// decides the same.
func TestContainerFields(t *testing.T) {
	t.Parallel()
	raw, err := schemas.Files.ReadFile("input.json")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref        string             `json:"$ref"`
		Properties map[string]*schema `json:"properties"`
		Items      *schema            `json:"items"`
	}
	var input struct {
		schema
		Definitions map[string]*schema `json:"definitions"`
	}
	if err := json.Unmarshal(raw, &input); err != nil {
		t.Fatal(err)
	}
	resolve := func(s *schema) *schema {
		if s != nil && s.Ref != "" {
			return input.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
		}
		return s
	}
	at := &input.schema
	for _, key := range []string{"pod", "spec", "containers"} {
		at = resolve(at.Properties[key])
	}
	fields := slices.Sorted(maps.Keys(resolve(at.Items).Properties))
	for _, field := range containerFields {
		if !slices.Contains(fields, field) {
			t.Errorf("a container has no field %s", field)
		}
	}
	s := snapshotOf(t, Shipped())
	tested := 0
	for name, spec := range selfTestPods {
		for _, trust := range []string{"trusted", "untrusted"} {
			in := plainInput()
			in.Namespace.Labels = map[string]string{catalog.LabelTrust: trust}
			read := func(more string) *Pod {
				return mustRead(`{"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": ` +
					strings.NewReplacer(`{"name": "c", "image": "i"`, `{"name": "c"`+more, `{"name": "i", "image": "i"`, `{"name": "i"`+more).Replace(spec) + `}`)
			}
			in.Pod = read("")
			want := evaluated(t, s, in)
			for _, field := range fields {
				if slices.Contains(containerFields, field) || field == "name" {
					continue
				}
				for _, value := range []string{`"x"`, `true`, `["privileged"]`, `[{"name": "nvidia.com/gpu", "value": "1"}]`, `{"privileged": true}`} {
					in.Pod = read(fmt.Sprintf(`, %q: %s`, field, value))
					tested++
					if diff := cmp.Diff(want, evaluated(t, s, in)); diff != "" {
						t.Errorf("%s: the shipped policy reads container.%s: %s", name, field, diff)
					}
				}
			}
		}
	}
	if tested < 1000 {
		t.Errorf("%d pods tested, of %d fields", tested, len(fields))
	}
}

// TestOwnerFields: of an owner the shipped policy reads the kind.
func TestOwnerFields(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, Shipped())
	for _, trust := range []string{"trusted", "untrusted"} {
		for _, kind := range []string{"ReplicaSet", "DaemonSet"} {
			in := plainInput()
			in.Namespace.Labels = map[string]string{catalog.LabelTrust: trust}
			owned := func(more string) *Pod {
				return mustRead(`{"metadata": {"ownerReferences": [{"kind": "` + kind + `"` + more + `}]}, "spec": {"containers": [{"name": "c"}]}}`)
			}
			in.Pod = owned("")
			want := evaluated(t, s, in)
			for _, field := range []string{"apiVersion", "name", "uid", "controller", "blockOwnerDeletion", "unknown"} {
				for _, value := range []string{`"DaemonSet"`, `"StatefulSet"`, `true`} {
					in.Pod = owned(fmt.Sprintf(`, %q: %s`, field, value))
					if diff := cmp.Diff(want, evaluated(t, s, in)); diff != "" {
						t.Errorf("the shipped policy reads ownerReferences.%s: %s", field, diff)
					}
				}
			}
		}
	}
}

// TestOtherLabelsAndAnnotations: whatever a pod carries under names that the shipped policy
// does not look up, it decides the same.
func TestOtherLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, Shipped())
	for _, trust := range []string{"trusted", "untrusted"} {
		in := plainInput()
		in.Namespace.Labels = map[string]string{catalog.LabelTrust: trust}
		carrying := func(metadata string) *Pod {
			return mustRead(`{"metadata": ` + metadata + `, "spec": {"containers": [{"name": "c"}]}}`)
		}
		in.Pod = carrying(`{"labels": {}, "annotations": {}}`)
		want := evaluated(t, s, in)
		for _, name := range []string{"pod-template-hash", "app", "example.com/trust", "trust", "gvisor.dev", "io.kubernetes.cri", "prometheus.io/scrape"} {
			for _, value := range []string{"untrusted", "trusted", "kernel-features", "true"} {
				in.Pod = carrying(fmt.Sprintf(`{"labels": {%[1]q: %[2]q}, "annotations": {%[1]q: %[2]q}}`, name, value))
				if diff := cmp.Diff(want, evaluated(t, s, in)); diff != "" {
					t.Errorf("the shipped policy reads label or annotation %s: %s", name, diff)
				}
			}
		}
	}
}

// TestRuntimePrefixes are those that the shipped policy looks for.
func TestRuntimePrefixes(t *testing.T) {
	t.Parallel()
	got, err := snapshotOf(t, Shipped()).Ask(t.Context(), plainInput(), "data.router.uses.runtime_prefixes")
	if err != nil {
		t.Fatal(err)
	}
	var want []any
	for _, prefix := range runtimePrefixes {
		want = append(want, prefix)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestReadsOfMetadata of the shipped policy: what a new version of an application changes
// is not read.
func TestReadsOfMetadata(t *testing.T) {
	t.Parallel()
	p, err := NewEngine().newPolicy(t.Context(), Shipped(), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	const spec = `, "spec": {"containers": [{"name": "c"}]}}`
	none := keyOf(t, p, `{"metadata": {"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {}}`+spec)
	for metadata, read := range map[string]bool{
		`"ownerReferences": [{"kind": "ReplicaSet", "name": "a", "uid": "b"}], "annotations": {}`:                   false,
		`"ownerReferences": [{"kind": "DaemonSet"}], "annotations": {}`:                                             true,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {"kubectl.kubernetes.io/restartedAt": "x"}`:    false,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {"dev.gvisor.spec": "x"}`:                      true,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {"io.katacontainers.config": "x"}`:             true,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {"io.kubernetes.cri.untrusted-workload": "x"}`: true,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {"` + catalog.AnnotationFallback + `": "x"}`:   true,
		`"ownerReferences": [{"kind": "ReplicaSet"}], "annotations": {}, "name": "a"`:                               false,
	} {
		if got := keyOf(t, p, `{"metadata": {`+metadata+`}`+spec) != none; got != read {
			t.Errorf("%s: read %t, want %t", metadata, got, read)
		}
	}
}

// TestReads of the shipped policy, and of one that an author adds to.
func TestReads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		module string
		pods   [2]string
		same   bool
	}{
		"image":                     {"", [2]string{`"image":"a"`, `"image":"b"`}, true},
		"environment":               {"", [2]string{`"env":[{"name":"a"}]`, ``}, true},
		"resources":                 {"", [2]string{`"resources":{"limits":{"a/b":"1"}}`, ``}, false},
		"image that an author asks": {`denials contains "x" if input.pod.spec.containers[_].image == "a"`, [2]string{`"image":"a"`, `"image":"b"`}, false},
		"image through a rule":      {"import data.router.uses\n\ndenials contains \"x\" if {\n\tsome c in uses.containers\n\tc.image == \"a\"\n}", [2]string{`"image":"a"`, `"image":"b"`}, false},
		"image that nobody asks":    {`denials contains "x" if input.pod.spec.hostname == "a"`, [2]string{`"image":"a"`, `"image":"b"`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modules := Shipped()
			if test.module != "" {
				modules["own.rego"] = "package router.custom\n\n" + test.module + "\n"
			}
			p, err := NewEngine().newPolicy(t.Context(), modules, DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			if same := keyOf(t, p, pod("{}", test.pods[0])) == keyOf(t, p, pod("{}", test.pods[1])); same != test.same {
				t.Errorf("the same to the policy: %t, want %t", same, test.same)
			}
		})
	}
}

func pod(labels, container string) string {
	return `{"metadata":{"labels":` + labels + `},"spec":{"containers":[{` + container + `}]}}`
}

func keyOf(t *testing.T, p *policy, raw string) key {
	t.Helper()
	in := plainInput()
	in.Pod = mustRead(raw)
	k, err := in.keyOf(catalog.Build(nil, nil), p.reads)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestReadsOfLabels: only those that a rule or an exception names.
func TestReadsOfLabels(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Exceptions = []Exception{{
		Name: "e", Namespaces: []string{"ns"}, PodLabels: map[string]string{"example.com/app": "x"}, RuntimeClassName: "crun",
		Owner: "o", Ticket: "t", Reason: "r", Until: "2030-01-01",
	}}
	p, err := NewEngine().newPolicy(t.Context(), Shipped(), config)
	if err != nil {
		t.Fatal(err)
	}
	none := keyOf(t, p, pod(`{}`, ""))
	for label, read := range map[string]bool{
		"pod-template-hash": false, "example.com/other": false, "example.com/app": true, catalog.LabelTrust: true, catalog.LabelProfile: true,
	} {
		if got := keyOf(t, p, pod(`{"`+label+`":"x"}`, "")) != none; got != read {
			t.Errorf("label %s is read: %t, want %t", label, got, read)
		}
	}
}
