package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// orphanMaker is set in the environment of the copy of this test that is killed.
const orphanMaker = "CONTROLPLANE_TEST_START_AND_WAIT"

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background()) // or controller-runtime complains after half a minute
	if os.Getenv(orphanMaker) != "" {
		cp, err := controlplane.Start(context.Background(), controlplane.Options{Scheduler: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cp.Dir)
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func TestNothingOutlivesKilledProcess(t *testing.T) {
	t.Parallel()
	if _, err := controlplane.Build(t.Context(), t.Output(), controlplane.Etcd, controlplane.APIServer, controlplane.Scheduler); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orphanMaker+"=1")
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	dir := strings.TrimSpace(line)
	var running []string
	if dir != "" {
		running = commandsNaming(t, dir)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if readErr != nil {
		t.Fatal(readErr)
	}
	if len(running) < 3 {
		t.Errorf("running before the kill: %q, want three programs", running)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		left := commandsNaming(t, dir)
		_, err := os.Stat(dir)
		if len(left) == 0 && errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the kill: still running %q, scratch folder %v", left, err)
		}
	}
}

// commandsNaming returns the command lines, of any process of this machine, that contain text. It
// does not rely on what the package notes about its processes.
func commandsNaming(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	if paths, err := filepath.Glob("/proc/[0-9]*/cmdline"); err == nil && len(paths) > 0 {
		for _, path := range paths {
			command, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			all = append(all, strings.ReplaceAll(string(command), "\x00", " "))
		}
	} else {
		out, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "command=").Output()
		if err != nil {
			t.Fatal(err)
		}
		all = strings.Split(string(out), "\n")
	}
	var found []string
	for _, command := range all {
		if strings.Contains(command, text) {
			found = append(found, command)
		}
	}
	return found
}
