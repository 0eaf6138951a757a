//go:build linux

package node

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// packages are Debian's packages by what is needed of them. What has no path is looked up.
var packages = []struct{ program, name string }{
	{"crun", "crun"},
	{"runc", "runc"},
	{"busybox", "busybox-static"},
	{"ip", "iproute2"},
	{"nft", "nftables"},
	{plugins + "/bridge", "containernetworking-plugins"},
	{plugins + "/host-local", "containernetworking-plugins"},
	{plugins + "/loopback", "containernetworking-plugins"},
}

// plugins is where Debian puts the CNI plugins.
const plugins = "/usr/lib/cni"

// hidden are covered by empty folders in the namespaces: programs write there at paths that nobody can
// set. Nothing that the stages inside need may lie below.
var hidden = []string{"/run", "/var/log", "/var/lib"}

// Requirements says what this machine lacks, all of it at once.
func Requirements() error {
	return errors.Join(privileges(), installed(), outsideHidden())
}

func privileges() error {
	if os.Geteuid() != 0 {
		return errors.New("test/node needs root: it makes namespaces, mounts and cgroups")
	}
	probe := exec.Command("/proc/self/exe", "-test.list=^$")
	probe.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := probe.Run(); err != nil {
		return fmt.Errorf("test/node needs mount, network, PID, IPC and UTS namespaces of its own, and cannot make them: %w", err)
	}
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := unix.Access(root, unix.W_OK); err != nil {
			return fmt.Errorf("test/node needs to make cgroups in %s: %w", root, err)
		}
	}
	return nil
}

func installed() error {
	var missing, wanted []string
	for _, p := range packages {
		path, err := exec.LookPath(p.program)
		if err == nil && p.program == "busybox" {
			err = static(path)
		}
		if err != nil {
			missing = append(missing, p.program)
			wanted = append(wanted, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("test/node needs %s: apt-get install -y --no-install-recommends %s",
		strings.Join(missing, ", "), strings.Join(slices.Compact(wanted), " "))
}

// static reports a program that needs a loader, which an image of it alone has not.
func static(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not linked statically", path)
		}
	}
	return nil
}

func outsideHidden() error {
	source, err := os.Getwd()
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range []string{source, cache, os.TempDir()} {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			errs = append(errs, err)
		}
		for _, dir := range hidden {
			if strings.HasPrefix(path+"/", dir+"/") {
				errs = append(errs, fmt.Errorf("test/node covers %s, where %s lies: move it, or set TMPDIR or XDG_CACHE_HOME", dir, path))
			}
		}
	}
	return errors.Join(errs...)
}
