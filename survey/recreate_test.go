package survey

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Parts of stored pods. Sent is what the creator sent beside its containers.
const (
	running    = `"status": {"phase": "Running"}`
	containers = `"containers": [{"name": "c", "image": "i"}]`
	ours       = `"runtimeclass-router.io/trust": "untrusted", "runtimeclass-router.io/reason": "so", "runtimeclass-router.io/policy-revision": "1"`
	routed     = `"runtimeClassName": "gvisor", "overhead": {"cpu": "50m"}`
	merged     = `"nodeSelector": {"example.com/runtime": "gvisor"}, "tolerations": [{"key": "example.com/sandbox", "operator": "Equal", "value": "gvisor", "effect": "NoSchedule"}]`
)

func sentBy(fields string) string {
	return `"managedFields": [{"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:spec": {"f:containers": {}, "f:nodeName": {}, "f:runtimeClassName": {}}}},
		{"manager": "labeller", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
		{"manager": "c", "fieldsV1": {"f:spec": {"f:containers": {}` + fields + `}}}]`
}

func TestRecreate(t *testing.T) {
	t.Parallel()
	daemon := `"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": true}]`
	for name, test := range map[string]struct {
		metadata, spec, status string
		wantMetadata, wantSpec string
		replaced               bool
	}{
		"not from a cluster": {
			metadata: `"name": "p", "annotations": {` + ours + `}`, spec: containers + `, "nodeName": "n", ` + routed, status: `"status": {}`,
			wantMetadata: `"name": "p", "annotations": {` + ours + `}`, wantSpec: containers + `, "nodeName": "n", ` + routed,
		},
		"what a cluster adds": {
			metadata:     `"name": "p-x", "generateName": "p-", "uid": "1", "resourceVersion": "2", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}`,
			spec:         containers + `, "nodeName": "n", "ephemeralContainers": [{"name": "d", "securityContext": {"privileged": true}}], "fieldOfTomorrow": 1`,
			wantMetadata: `"generateName": "p-", "labels": {"a": "b"}`, wantSpec: containers + `, "fieldOfTomorrow": 1`,
		},
		"a name of its own": {
			metadata: `"name": "p-0", "uid": "1"`, spec: containers,
			wantMetadata: `"name": "p-0"`, wantSpec: containers,
		},
		"a class that it asked for": {
			metadata: `"name": "p", ` + sentBy(`, "f:runtimeClassName": {}`), spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, ` + routed + `, ` + merged,
		},
		"a class that it was given": {
			metadata: `"name": "p", "annotations": {"a": "b", ` + ours + `}`, spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p", "annotations": {"a": "b"}`, wantSpec: containers,
		},
		"no class, and annotations": {
			metadata: `"name": "p", "annotations": {` + ours + `}`, spec: containers + `, "nodeSelector": {"example.com/runtime": "gvisor"}`,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, "nodeSelector": {"example.com/runtime": "gvisor"}`,
		},
		"placement of its own stays": {
			metadata: `"name": "p", "annotations": {` + ours + `}, ` + sentBy(`, "f:nodeSelector": {}`),
			spec: containers + `, ` + routed + `, "nodeSelector": {"disk": "ssd", "example.com/runtime": "gvisor"}, "tolerations": [{"key": "own", "tomorrow": 1},
				{"key": "example.com/sandbox", "operator": "Equal", "value": "gvisor", "effect": "NoSchedule"}]`,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "own", "tomorrow": 1}]`,
		},
		"a class that is gone": {
			metadata: `"name": "p", "annotations": {` + ours + `}`, spec: containers + `, "runtimeClassName": "gone", ` + merged,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, ` + merged,
		},
		"a class that was replaced": {
			metadata: `"name": "p", "annotations": {` + ours + `}, ` + sentBy(`, "f:runtimeClassName": {}`), spec: containers + `, ` + routed,
			wantMetadata: `"name": "p"`, wantSpec: containers, replaced: true,
		},
		"a class of the fallback": {
			metadata: `"name": "p", "annotations": {"runtimeclass-router.io/fallback": "gvisor"}`, spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p"`, wantSpec: containers,
		},
		"a fallback to another class": {
			metadata: `"name": "p", "annotations": {"runtimeclass-router.io/fallback": "kata-fc"}`, spec: containers + `, ` + routed,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, ` + routed,
		},
		"a node that it asked for": {
			metadata: `"name": "p", ` + sentBy(`, "f:nodeName": {}`), spec: containers + `, "nodeName": "n"`,
			wantMetadata: `"name": "p"`, wantSpec: containers + `, "nodeName": "n"`,
		},
		"a node that it was bound to": {
			metadata: `"name": "p", ` + sentBy(""), spec: containers + `, "nodeName": "n"`,
			wantMetadata: `"name": "p"`, wantSpec: containers,
		},
		"a DaemonSet whose template selects the pool": {
			metadata: `"name": "p", ` + daemon + `, "annotations": {` + ours + `}, ` + sentBy(`, "f:nodeSelector": {}`), spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p", ` + daemon, wantSpec: containers + `, "nodeSelector": {"example.com/runtime": "gvisor"}`,
		},
		"a DaemonSet, nobody knows": {
			metadata: `"name": "p", ` + daemon + `, "annotations": {` + ours + `}`, spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p", ` + daemon, wantSpec: containers + `, "nodeSelector": {"example.com/runtime": "gvisor"}`,
		},
		"a DaemonSet without a selector": {
			metadata: `"name": "p", ` + daemon + `, "annotations": {` + ours + `}, ` + sentBy(""), spec: containers + `, ` + routed + `, ` + merged,
			wantMetadata: `"name": "p", ` + daemon, wantSpec: containers,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.status == "" {
				test.status = running
			}
			got, err := Recreate(json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": {`+test.metadata+`}, "spec": {`+test.spec+`}, `+test.status+`}`), exampleCatalog(t))
			if err != nil {
				t.Fatal(err)
			}
			want := `{"apiVersion": "v1", "kind": "Pod", "metadata": {` + test.wantMetadata + `}, "spec": {` + test.wantSpec + `}}`
			decode := func(text string) map[string]any {
				var object map[string]any
				if err := json.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				delete(object, "status")
				return object
			}
			if diff := cmp.Diff(decode(want), decode(string(got.Raw))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.Replaced != test.replaced {
				t.Errorf("replaced %t, want %t", got.Replaced, test.replaced)
			}
		})
	}
}

// TestRecreateOfWhatIsNoPod is an error, and no pod without what could not be read.
func TestRecreateOfWhatIsNoPod(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`"metadata": {"annotations": []}`, `"metadata": {"ownerReferences": {}}`, `"spec": {"runtimeClassName": 7}`, `"spec": []`,
		`"metadata": {"annotations": {` + ours + `}}, "spec": {"runtimeClassName": "gvisor", "nodeSelector": []}`,
		`"metadata": {"annotations": {` + ours + `}}, "spec": {"runtimeClassName": "gvisor", "tolerations": {}}`,
	} {
		for _, lacking := range []string{"metadata", "spec"} {
			if !strings.Contains(field, `"`+lacking+`"`) {
				field += `, "` + lacking + `": {}`
			}
		}
		if got, err := Recreate(json.RawMessage(`{`+field+`, `+running+`}`), exampleCatalog(t)); err == nil {
			t.Errorf("%s: %s", field, got.Raw)
		}
	}
}

func exampleCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	m, err := catalog.ReadManifests([]string{"../cmd/runtimeclass-router/cluster.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.Catalog()
}
