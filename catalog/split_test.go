package catalog

import (
	"strings"
	"testing"
)

// TestSplitReadsAFileOnce: a list of a large cluster's pods is one document of a
// hundred thousand lines. Copying what there is for every line takes minutes.
func TestSplitReadsAFileOnce(t *testing.T) { // not parallel, it counts allocations
	file := strings.Repeat("a: b\n", 10_000)
	if got := testing.AllocsPerRun(1, func() { split(file) }); got > 100 {
		t.Errorf("%.0f allocations for one document of 10000 lines", got)
	}
}
