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

func TestBuildUnknownRelease(t *testing.T) {
	t.Setenv(controlplane.VersionVariable, "1.12")
	_, err := controlplane.Build(t.Context(), t.Output())
	if want := `KUBERNETES_VERSION: unknown version "1.12": want one of 1.37, 1.36, 1.35, 1.34`; err == nil || err.Error() != want {
		t.Errorf("Build: %v, want %s", err, want)
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	newest := controlplane.Newest()
	if !newest.AtLeast(37) || newest.AtLeast(100) || newest.Minor() != "1.37" {
		t.Errorf("%s is %s", newest.Version, newest.Minor())
	}
}

// TestVersions keeps the versions, which end up in binaries and in the cache folder's name, from
// drifting away from what the modules require.
func TestVersions(t *testing.T) {
	t.Parallel()
	modules := map[string][]string{
		"etcd": {"go.etcd.io/etcd/server/v3 " + controlplane.EtcdVersion},
		"helm": {"helm.sh/helm/v4 " + controlplane.HelmVersion},

		"containerd": {"github.com/containerd/containerd/v2 " + controlplane.ContainerdVersion},
		"gvisor":     {"gvisor.dev/gvisor " + controlplane.GVisorVersion},
	}
	for _, release := range controlplane.Releases() {
		folder, staging := "kubernetes", strings.Replace(release.Version, "v1.", "v0.", 1)
		if release != controlplane.Newest() {
			folder += "-" + release.Minor()
		}
		modules[folder] = []string{"k8s.io/kubernetes " + release.Version, "k8s.io/apiserver => k8s.io/apiserver " + staging}
	}
	for module, lines := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile("modules/" + module + "/go.mod")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				// A line that goes on, does so with a comment.
				if text := string(content); !strings.Contains(text, line+"\n") && !strings.Contains(text, line+" //") {
					t.Errorf("go.mod does not say %q", line)
				}
			}
		})
	}
}
