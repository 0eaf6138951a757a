package plugin

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// TestKubectl installs the plugin as docs/developers.md says. A zero exit status of
// kubectl is wanted unless a case says so.
func TestKubectl(t *testing.T) {
	t.Parallel()
	binaries, err := controlplane.Build(t.Context(), t.Output(), controlplane.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	plugin := filepath.Join(path, "kubectl-runtimeclass_router")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", plugin, "./cmd/runtimeclass-router")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	if err := os.Symlink(filepath.Base(plugin), filepath.Join(path, "kubectl_complete-runtimeclass_router")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []string
		want   []string
		status int
	}{
		{"listed", []string{"plugin", "list"}, []string{plugin}, 0},
		{"with a dash", []string{"runtimeclass-router", "version"}, []string{"runtimeclass-router "}, 0},
		{"with an underscore", []string{"runtimeclass_router", "version"}, []string{"runtimeclass-router "}, 0},
		{"help", []string{"runtimeclass-router", "policy", "test", "--help"}, []string{"\n  kubectl runtimeclass-router policy test PATH"}, 0},
		{"flags", []string{"runtimeclass-router", "route", "-f", "../../examples/pods/untrusted.yaml", "-o", "json"}, []string{`"runtimeClassName": "gvisor"`}, 0},
		{"exit status", []string{"runtimeclass-router", "route", "-f", "../../examples/namespaces.yaml", "-f", "../../examples/pods/around.yaml", "--fail-on-deny"}, []string{"DENIED"}, 2},
		{"error", []string{"runtimeclass-router", "rout"}, []string{`error: unknown command "rout" for "kubectl runtimeclass-router"`}, 1},
		{"completes commands", []string{"__complete", "runtimeclass-router", "node"}, []string{"node-config\t", ":4\n"}, 0},
		{"completes values", []string{"__complete", "runtimeclass-router", "node-config", "--cri", "con"}, []string{"containerd\n"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			kubectl := exec.CommandContext(t.Context(), filepath.Join(binaries, controlplane.Kubectl), test.args...)
			kubectl.Env = append(os.Environ(), "PATH="+path)
			kubectl.Stdout, kubectl.Stderr = &out, &out
			err := kubectl.Run()
			if status := kubectl.ProcessState.ExitCode(); status != test.status {
				t.Errorf("status %d (%v), want %d", status, err, test.status)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}
