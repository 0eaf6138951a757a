package webhook

import (
	"strings"
	"testing"
)

// TestDenialsAreReadableThroughAController: one line, short, the first sentence alone
// says what is wrong, and every fault has its hint.
func TestDenialsAreReadableThroughAController(t *testing.T) {
	t.Parallel()
	handler, _ := newHandler(t)
	three := create("untrusted", `"hostNetwork": true, "volumes": [{"name": "h", "hostPath": {"path": "/var/log"}}], `+
		`"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": true}}], "nodeName": "n"`)
	got := handler.Handle(t.Context(), three).Result.Message
	for _, want := range []string{
		"runtimeclass-router: no sandbox here can run this pod (",
		"use the pod network", "drop privileged", "use an emptyDir", "leave nodeName to the scheduler",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q: %s", want, got)
		}
	}
	first, _, _ := strings.Cut(got, "; ")
	for _, want := range []string{"spec.hostNetwork", "spec.volumes[0].hostPath", "spec.initContainers[0].securityContext.privileged", "spec.nodeName", `namespace "untrusted" is labelled trust=untrusted`} {
		if !strings.Contains(first, want) {
			t.Errorf("the first sentence lacks %q: %s", want, first)
		}
	}
	if len(got) >= 1000 || strings.ContainsAny(got, "\n\r") {
		t.Errorf("%d characters: %q", len(got), got)
	}
}

func TestALongMessageIsCutBetweenReasons(t *testing.T) {
	t.Parallel()
	long := "runtimeclass-router: " + strings.Repeat("é a reason; ", 200)
	got := brief(long)
	if len(got) >= 1000 || !strings.HasSuffix(got, "é a reason; and more, which runtimeclass-router route -f lists") {
		t.Errorf("%d characters: %s", len(got), got)
	}
	if unbroken := brief(strings.Repeat("é", 900)); len(unbroken) >= 1000 || !strings.HasSuffix(unbroken, "lists") {
		t.Errorf("%d characters", len(unbroken))
	}
	if short := "runtimeclass-router: a; b"; brief(short) != short {
		t.Error("a short message was cut")
	}
}
