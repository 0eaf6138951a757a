//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The addresses of the cluster, all of them in its own network namespace.
const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes: the first of the range
	apiAddress     = "10.88.0.1" // what that Service sends to
	podRange       = "10.89.0.0/16"
)

// sysctls are settings of the whole machine that a kubelet writes where it finds others. It is shown
// files instead that say what it wants.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// Initialise is the stage [Init]. It returns the status that the tests exited with.
func Initialise() int {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the namespaces:", err)
		return 1
	}
	tests := again(Inside, Scratch())
	if err := tests.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start the tests:", err)
		return 1
	}
	// Process 1 inherits what others leave, a shim for one, and must reap it.
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			fmt.Fprintln(os.Stderr, "wait for the tests:", err)
			return 1
		case pid == tests.Process.Pid && status.Exited():
			return status.ExitStatus()
		case pid == tests.Process.Pid:
			fmt.Fprintln(os.Stderr, "the tests were ended by", status.Signal())
			return 1
		}
	}
}

func prepare() error {
	if err := prepareMounts(); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte("node")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return prepareNetwork()
}

func prepareMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := leaveVersionTwo(); err != nil {
		return err
	}
	for _, dir := range hidden {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/run/netns", "/run/lock", "/run/sysctls"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for key, value := range sysctls {
		file := filepath.Join("/run/sysctls", strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+key, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover /proc/sys/%s: %w", key, err)
		}
	}
	return nil
}

// leaveVersionTwo unmounts the cgroup2 of a machine that has both versions: where it carries a
// controller, crun refuses to choose.
func leaveVersionTwo() error {
	all, err := mounts()
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.kind == "cgroup2" && m.point != cgroupRoot && strings.HasPrefix(m.point, cgroupRoot) {
			if err := syscall.Unmount(m.point, syscall.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount %s: %w", m.point, err)
			}
		}
	}
	return nil
}

func prepareNetwork() error {
	commands := []string{"link set lo up"}
	for _, node := range nodes {
		commands = append(commands, "address add "+node.address+"/32 dev lo")
	}
	commands = append(commands,
		// The API server has the address of its own Service, so that one certificate is right for
		// pods and for everybody else.
		"address add "+serviceAddress+"/32 dev lo",
		// Without a route a connection to a Service fails before kube-proxy's rules see it. Over lo it
		// would not learn that a Service has no endpoints.
		"link add services type bridge",
		"link set services up",
		"route add "+serviceRange+" dev services src "+apiAddress)
	for _, command := range commands {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w\n%s", command, err, out)
		}
	}
	return nil
}
