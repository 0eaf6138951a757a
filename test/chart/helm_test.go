package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

const (
	chartPath = "../../charts/runtimeclass-router"
	// release is also the name of every object: it contains the chart's.
	release = "runtimeclass-router"
	// namespace is a name that YAML takes for a number unless it is quoted.
	namespace = "1234"
)

// latest makes helm template render for a cluster that serves all that the chart can use.
const latest = older + ",admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// older is [latest] for a cluster that has no fallback.
const older = "--api-versions=" +
	"monitoring.coreos.com/v1/PodMonitor,monitoring.coreos.com/v1/ServiceMonitor,monitoring.coreos.com/v1/PrometheusRule"

// foreign are the groups whose kinds are decoded strictly elsewhere: the types are other
// projects', and no part of the product.
var foreign = map[string]string{"monitoring.coreos.com": "promql/monitoring_test.go", "cert-manager.io": "certmodes_test.go"}

// template runs helm template with the values, a YAML document, for the latest cluster.
func template(t *testing.T, values string) (string, error) {
	t.Helper()
	return templateFor(t, values, latest)
}

// templateFor is template with flags that say what the cluster serves.
func templateFor(t *testing.T, values string, flags ...string) (string, error) {
	t.Helper()
	return helm(t, values, append([]string{"template", release, chartPath, "--namespace", namespace}, flags...)...)
}

// helm runs a command that needs no cluster with the values, a YAML document.
func helm(t *testing.T, values string, args ...string) (string, error) {
	t.Helper()
	bin, err := controlplane.Build(t.Context(), t.Output(), controlplane.Helm)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, controlplane.Helm),
		append(args, "--values", "-")...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBE") && !strings.HasPrefix(variable, "HELM_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	cmd.Stdin = strings.NewReader(values)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.New(stderr.String())
	}
	return stdout.String(), nil
}

// render returns the objects that the chart renders with the values. A field that
// the object's type does not have fails the test.
func render(t *testing.T, values string) []client.Object {
	t.Helper()
	manifests, err := template(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, manifests)
}

func decode(t *testing.T, manifests string) []client.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	var objects []client.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			decoded, err = decodeForeign(document)
		}
		if err != nil {
			t.Fatalf("decode: %v\n%s", err, document)
		}
		object, ok := decoded.(client.Object)
		if !ok {
			t.Fatalf("rendered a %T", decoded)
		}
		objects = append(objects, object)
	}
}

func decodeForeign(document []byte) (runtime.Object, error) {
	raw, err := yaml.ToJSON(document)
	if err != nil {
		return nil, err
	}
	decoded, kind, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	if err == nil && foreign[kind.Group] == "" {
		err = fmt.Errorf("no test decodes %s strictly", kind)
	}
	return decoded, err
}

// only returns the one object of type T.
func only[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		var zero T
		t.Fatalf("rendered %d objects of type %T, want 1", len(found), zero)
	}
	return found[0]
}
