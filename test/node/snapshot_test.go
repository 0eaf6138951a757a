//go:build linux

package node_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/node"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	before := node.Snapshot{"links": {"eth0", "lo"}, "filters": {"}", "}"}, "mounts": {"/"}}
	after := node.Snapshot{"links": {"lo", "crun-1"}, "filters": {"}"}, "mounts": {"/"}}
	want := []string{"filters: gone: }", "links: new: crun-1", "links: gone: eth0"}
	if diff := cmp.Diff(want, before.Difference(after)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if same := before.Difference(before); len(same) > 0 {
		t.Errorf("a snapshot differs from itself: %q", same)
	}
}
