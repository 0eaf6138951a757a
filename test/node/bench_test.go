//go:build linux

package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

// benchVariable names a folder for a benchmark worth keeping: with the command's own numbers of pods,
// rather than the few that show that it works.
const benchVariable = "RUNTIMECLASS_ROUTER_NODE_BENCH"

// bench has the command measure the cluster's runtimes.
func (c *cluster) bench(t *testing.T) {
	const name = "bench"
	c.namespace(t, name, map[string]string{"trust": "trusted"})
	folder, few := os.Getenv(benchVariable), []string{"--pods=2", "--runs=1"}
	if folder == "" {
		folder = t.TempDir()
	} else {
		few = nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	classes := []string{"crun", "runc", "gvisor"}
	chart := filepath.Join(folder, "bench.svg")
	command := c.Command(t.Context(), node.Product(), append([]string{
		"bench", "--namespace=" + name, "--class=" + strings.Join(classes, ","), "--svg=" + chart,
		"--image=" + node.BusyBox, "--image-pull-policy=Never",
	}, few...)...)
	var table, notes bytes.Buffer
	command.Stdout, command.Stderr = &table, &notes
	if err := command.Run(); err != nil { // which says that a class was not measured to its end
		t.Fatalf("%v: %v\n%s%s", command, err, notes.String(), table.String())
	}
	t.Log(command.Args[1:], "\n"+table.String())
	for _, class := range classes {
		if !strings.Contains(table.String(), class) {
			t.Errorf("the table does not name %s", class)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "bench.txt"), table.Bytes(), 0o644); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(chart); err != nil || !bytes.Contains(content, []byte("gvisor")) {
		t.Errorf("the chart does not name gvisor (%v)", err)
	}
	if left := c.kubectl(t, "get", "pods", "--namespace="+name, "--output=name"); left != "" {
		t.Errorf("left: %s", left)
	}
}
