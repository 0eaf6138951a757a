package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// What is changed in gVisor's shim. It lowers its own OOM score, which takes CAP_SYS_RESOURCE and is
// fatal without it; containerd's shim for runc shrugs, and so does this one then. No other program is
// changed.
const (
	shimScore    = "sys.SetOOMScore(cmd.Process.Pid, oomScoreMax); err != nil {"
	shimTolerant = "sys.SetOOMScore(cmd.Process.Pid, oomScoreMax); err != nil && !os.IsPermission(err) {"
)

// patchShim copies the module gvisor to dir and puts the changed copy of gVisor's package
// pkg/shim/v1 beside it. An overlay would do without a copy, but the go command takes none of what
// lies in the module cache.
func patchShim(ctx context.Context, module, dir string) error {
	const original = "gvisor.dev/gvisor"
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		return err
	}
	if out, err := goCommand(ctx, module, "mod", "download", original).CombinedOutput(); err != nil {
		return fmt.Errorf("download %s: %w\n%s", original, err, tail(string(out)))
	}
	folder, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", original).Output()
	if err != nil {
		return fmt.Errorf("locate %s: %w", original, err)
	}
	shim := filepath.Join(strings.TrimSpace(string(folder)), "pkg", "shim", "v1")
	changed := 0
	for _, pkg := range []string{".", "plugin"} {
		files, err := filepath.Glob(filepath.Join(shim, pkg, "*.go"))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, "v1", pkg), 0o755); err != nil {
			return err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text := string(content)
			changed += strings.Count(text, shimScore)
			text = strings.ReplaceAll(text, shimScore, shimTolerant)
			if pkg == "plugin" {
				text = strings.ReplaceAll(text, `"gvisor.dev/gvisor/pkg/shim/v1"`,
					`"github.com/runtimeclass-router/runtimeclass-router/test/controlplane/modules/gvisor/v1"`)
			}
			if err := os.WriteFile(filepath.Join(dir, "v1", pkg, filepath.Base(file)), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if changed != 1 {
		return fmt.Errorf("the line to change in %s is there %d times, want once: mend gvisor.go of package controlplane", shim, changed)
	}
	return nil
}

// goCommand is the go command in a module's folder. The caller's workspace, flags and target platform
// are for this repository, not for these modules.
func goCommand(ctx context.Context, module string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}
