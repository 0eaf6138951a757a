package integration

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// counters returns what the webhook itself counts, as it is spelt in the text format.
// The age of a watch is no count: it changes by itself. What is told of decisions is counted
// a moment after them.
func counters(t *testing.T) map[string]float64 {
	t.Helper()
	series := seriesOf(t, shared.Router)
	maps.DeleteFunc(series, func(name string, _ float64) bool {
		return !strings.HasPrefix(name, "runtimeclass_router_") || strings.HasPrefix(name, "runtimeclass_router_watch_age_seconds") ||
			strings.HasPrefix(name, "runtimeclass_router_decision_log_")
	})
	return series
}

func seriesOf(t *testing.T, router *stack.Router) map[string]float64 {
	t.Helper()
	text, err := router.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || end < 0 {
			continue
		}
		if series[line[:end]], err = strconv.ParseFloat(line[end+1:], 64); err != nil {
			t.Fatalf("metrics: %q: %v", line, err)
		}
	}
	return series
}
