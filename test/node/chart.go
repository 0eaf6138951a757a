//go:build linux

package node

import (
	"context"
	"os"
	"path/filepath"
)

// The Helm release of the product.
const (
	Release   = "runtimeclass-router"
	Namespace = "runtimeclass-router"
)

// Install installs the chart, or upgrades it with further settings, each `KEY=VALUE`. It returns when
// the pods are ready, which is before the API server calls them.
func (c *Cluster) Install(ctx context.Context, settings ...string) error {
	values := filepath.Join(Scratch(), "values.yaml")
	content, err := embedded.ReadFile("files/values.yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(values, content, 0o600); err != nil {
		return err
	}
	args := []string{
		"upgrade", "--install", Release, "../../charts/runtimeclass-router", "--values=" + values,
		"--namespace=" + Namespace, "--create-namespace", "--wait", "--timeout=2m",
	}
	for _, setting := range settings {
		args = append(args, "--set="+setting)
	}
	_, err = c.Helm(ctx, args...)
	return err
}
