package controlplane_test

import (
	"os"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func TestBuildUnknownProgram(t *testing.T) {
	t.Parallel()
	_, err := controlplane.Build(t.Context(), t.Output(), "kube-dns")
	if err == nil || !strings.Contains(err.Error(), `unknown program "kube-dns"`) {
		t.Errorf("Build: %v, want the unknown program to be named", err)
	}
}

// TestVersions keeps the constants, which end up in binaries and in the cache folder's name, from
// drifting away from what the modules require.
func TestVersions(t *testing.T) {
	t.Parallel()
	staging := strings.Replace(controlplane.KubernetesVersion, "v1.", "v0.", 1)
	for _, test := range []struct{ name, module, line string }{
		{"etcd", "etcd", "go.etcd.io/etcd/server/v3 " + controlplane.EtcdVersion},
		{"helm", "helm", "helm.sh/helm/v4 " + controlplane.HelmVersion},
		{"kubernetes", "kubernetes", "k8s.io/kubernetes " + controlplane.KubernetesVersion},
		{"containerd", "containerd", "github.com/containerd/containerd/v2 " + controlplane.ContainerdVersion},
		{"gvisor", "gvisor", "gvisor.dev/gvisor " + controlplane.GVisorVersion},
		{"staging", "kubernetes", "k8s.io/apiserver => k8s.io/apiserver " + staging},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile("modules/" + test.module + "/go.mod")
			if err != nil {
				t.Fatal(err)
			}
			// A line that goes on, does so with a comment.
			if text := string(content); !strings.Contains(text, test.line+"\n") && !strings.Contains(text, test.line+" //") {
				t.Errorf("go.mod does not say %q", test.line)
			}
		})
	}
}
