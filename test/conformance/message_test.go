package conformance

import (
	"strings"
	"testing"
)

// checkMessage fails unless a denial says in its first sentence who refused and for
// what, in one line: a controller shows no more of it.
func checkMessage(t *testing.T, message string) {
	t.Helper()
	if strings.ContainsAny(message, "\n\r\t") {
		t.Errorf("more than one line: %q", message)
	}
	first, rest, _ := strings.Cut(message, "; ")
	if !strings.HasPrefix(first, "runtimeclass-router: ") || !strings.Contains(first, "(spec.") && !strings.Contains(first, "(metadata.") {
		t.Errorf("the first sentence does not say who refused and for which field: %s", first)
	}
	if !strings.Contains(rest, "(") { // the hints
		t.Errorf("nothing says what to do: %s", message)
	}
}
