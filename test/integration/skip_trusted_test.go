package integration

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// TestTrustedNamespacesAreSkipped: with webhook.skipTrusted nobody is asked about a pod of
// a trusted namespace, but for one that lowers itself, by whatever word, and neither a pod's
// own label nor an unlabelled namespace gets around the webhook.
func TestTrustedNamespacesAreSkipped(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{
		Progress: t.Output(),
		Cluster:  []string{filepath.Join("testdata", "cluster.yaml")},
		Values: map[string]any{
			"webhook": map[string]any{"skipTrusted": true},
			"router":  map[string]any{"unlabelledNamespaces": map[string]any{"trust": "untrusted", "mode": "enforce"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, test := range map[string]struct{ namespace, pod, want string }{
		"trusted":                        {"trusted", "", ""},
		"trusted, and says so":           {"trusted", "trusted", ""},
		"lowers itself":                  {"trusted", "untrusted", "gvisor"},
		"lowers itself to what is not":   {"trusted", "trustd", "gvisor"},
		"untrusted":                      {"untrusted", "", "gvisor"},
		"untrusted, and claims trust":    {"untrusted", "trusted", "gvisor"},
		"no label":                       {"", "", "gvisor"},
		"no label, and claims trust":     {"", "trusted", "gvisor"},
		"a word that nobody knows":       {"nonsense", "", "gvisor"},
		"trusted, and written otherwise": {"Trusted", "", "gvisor"},
	} {
		t.Run(name, func(t *testing.T) {
			labelled := func(level string) map[string]string {
				if level == "" {
					return nil
				}
				return map[string]string{catalog.LabelTrust: level}
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "skip-", Labels: labelled(test.namespace)}}
			if err := s.Client.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "p", Labels: labelled(test.pod)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
			if err := s.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			var got string
			if pod.Spec.RuntimeClassName != nil {
				got = *pod.Spec.RuntimeClassName
			}
			if got != test.want {
				t.Errorf("class %q, want %q", got, test.want)
			}
		})
	}
}
