package stack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// PeakMemory watches a process until it ends, and returns the most memory that it was seen to
// have, in kB: 0 if it was never seen. The kernel's own figure for a child that has ended starts
// with its parent's.
func PeakMemory(pid int) (peak float64) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, found := strings.Cut(string(text), "VmHWM:")
		if err != nil || !found { // it has ended
			return peak
		}
		if kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64); err == nil {
			peak = kb
		}
		time.Sleep(20 * time.Millisecond)
	}
}
