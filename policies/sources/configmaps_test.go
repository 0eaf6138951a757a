package sources

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const testNamespace = "router"

// configMap is one that is labelled.
func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: name, UID: "1",
			Labels: map[string]string{catalog.LabelPolicy: catalog.PolicyLabelValue},
		},
		Data: data,
	}
}

func TestConfigMaps(t *testing.T) {
	t.Parallel()
	elsewhere := configMap("elsewhere", map[string]string{"a.rego": "package elsewhere\n"})
	elsewhere.Namespace = "tenant"
	unlabelled := configMap("unlabelled", map[string]string{"a.rego": "package unlabelled\n"})
	unlabelled.Labels = nil
	switchedOff := configMap("off", map[string]string{"a.rego": "package off\n"})
	switchedOff.Labels[catalog.LabelPolicy] = "false"
	client := fake.NewClientset(elsewhere, unlabelled, switchedOff, configMap("one", map[string]string{"a.rego": "package a\n"}))
	deliveries := run(t, NewConfigMaps(client, testNamespace, catalog.PolicyLabelValue))
	first := await(t, deliveries, holds(policies.Modules{"one/a.rego": "package a\n"}))
	if object := first.Objects["one"]; object.Kind != "ConfigMap" || object.Namespace != testNamespace || object.UID == "" {
		t.Errorf("object %+v", object)
	}

	objects := client.CoreV1().ConfigMaps(testNamespace)
	if _, err := objects.Create(t.Context(), configMap("two", map[string]string{"a.rego": "package two\n"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, deliveries, holds(policies.Modules{"one/a.rego": "package a\n", "two/a.rego": "package two\n"}))

	bad := configMap("two", map[string]string{"a.reg": "package two\n", "b.rego": "package b\n"})
	bad.BinaryData = map[string][]byte{"c.rego": {0xff}}
	if _, err := objects.Update(t.Context(), bad, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := await(t, deliveries, fails(`two/a.reg:1: key "a.reg" of ConfigMap two does not end in .rego`, `two/c.rego:1: key "c.rego" of ConfigMap two is binary`))
	if d.Modules != nil || d.Objects["two"].Name != "two" {
		t.Errorf("delivered %+v", d)
	}

	if err := objects.Delete(t.Context(), "two", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, deliveries, holds(policies.Modules{"one/a.rego": "package a\n"}))
	if err := objects.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, deliveries, holds(policies.Modules{}))
}

// TestConfigMapsWithoutRights: what an informer only logs.
func TestConfigMapsWithoutRights(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	await(t, run(t, NewConfigMaps(client, testNamespace, catalog.PolicyLabelValue)),
		fails("watch ConfigMaps labelled runtimeclass-router.io/policy=true in namespace router", "forbidden"))
}

// TestConfigMapsNone: to have no policy of one's own is no fault.
func TestConfigMapsNone(t *testing.T) {
	t.Parallel()
	await(t, run(t, NewConfigMaps(fake.NewClientset(), testNamespace, catalog.PolicyLabelValue)), holds(policies.Modules{}))
}
