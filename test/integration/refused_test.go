package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// Not parallel: the webhook's counters must stand still.
func TestClassThatTheAPIServerRefusesNeverReachesTheWebhook(t *testing.T) {
	n := untrusted(t)
	for asked, want := range map[string]string{
		"":              "resource name may not be empty",
		"no-such-class": `RuntimeClass "no-such-class" not found`,
	} {
		t.Run(asked, func(t *testing.T) {
			before := counters(t)
			err := n.in(t).create(newPod(class(asked))).err
			if err == nil || stack.Denied(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("the API server answers %v, want %q", err, want)
			}
			if diff := cmp.Diff(before, counters(t)); diff != "" {
				t.Errorf("the webhook was called (-before +after):\n%s", diff)
			}
		})
	}
	// The counters do move when it is called.
	before := counters(t)
	n.admitted(newPod())
	if cmp.Equal(before, counters(t)) {
		t.Error("the webhook was called, and no counter shows it")
	}
}
