package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Kubectl runs kubectl as the administrator and returns its standard output, also along with an
// error, which carries the end of its standard error.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return cp.run(ctx, nil, Kubectl, args)
}

// KubectlInput is [ControlPlane.Kubectl] with standard input, for "apply -f -".
func (cp *ControlPlane) KubectlInput(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return cp.run(ctx, stdin, Kubectl, args)
}

// Helm runs helm as the administrator, with its caches and settings in the scratch folder. It
// returns what [ControlPlane.Kubectl] does.
func (cp *ControlPlane) Helm(ctx context.Context, args ...string) (string, error) {
	return cp.run(ctx, nil, Helm, args)
}

func (cp *ControlPlane) run(ctx context.Context, stdin io.Reader, name string, args []string) (string, error) {
	bin, err := cp.Release.Build(ctx, cp.progress, name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = cp.environment()
	cmd.Stdin = stdin
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(stderr.String()))
	}
	return stdout.String(), nil
}

// environment returns this process's environment without what would direct kubectl and helm to
// another cluster, and with all their state in the scratch folder.
func (cp *ControlPlane) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "KUBE") || strings.HasPrefix(variable, "HELM_") {
			continue
		}
		env = append(env, variable)
	}
	return append(env,
		"KUBECONFIG="+cp.KubeconfigPath,
		"KUBECACHEDIR="+filepath.Join(cp.Dir, "kubectl"),
		"HELM_CACHE_HOME="+filepath.Join(cp.Dir, "helm", "cache"),
		"HELM_CONFIG_HOME="+filepath.Join(cp.Dir, "helm", "config"),
		"HELM_DATA_HOME="+filepath.Join(cp.Dir, "helm", "data"))
}
