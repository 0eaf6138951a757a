package integration

import (
	"net/http"
	"strings"
	"testing"
)

// conflict marks a pod for which testdata/custom.rego names two lists of candidates.
var conflict = labelled("example.com/conflict=yes")

func TestCustomDenial(t *testing.T) {
	t.Parallel()
	forbidden := newPod(labelled("example.com/forbidden=because"))
	const want = "label example.com/forbidden=because is not for this cluster"
	for _, trust := range []string{"trusted", "untrusted"} {
		t.Run(trust, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, "trust="+trust)
			if message := wantDenied(t, n.create(forbidden.DeepCopy()), http.StatusForbidden); !strings.Contains(message, want) {
				t.Errorf("the denial does not mention %q: %s", want, message)
			}
			n.admitted(newPod())
		})
	}
	t.Run("warned", func(t *testing.T) {
		t.Parallel()
		answer := newNamespace(t).create(forbidden.DeepCopy())
		wantUnpatched(t, answer.mustPod(t))
		if !mentions(answer.warnings, "in mode enforce this pod would be denied: "+want) {
			t.Errorf("warnings %q", answer.warnings)
		}
	})
}

// Fails closed where sandboxes are enforced, and nowhere else.
func TestPolicyErrorAtRunTime(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		labels  []string
		refused bool
		warned  bool
	}{
		"enforce, untrusted": {[]string{"trust=untrusted"}, true, false},
		"enforce, trusted":   {[]string{"trust=trusted"}, true, false},
		"unlabelled":         {nil, false, true},
		"warn":               {[]string{"trust=untrusted", "mode=warn"}, false, true},
		"audit":              {[]string{"trust=untrusted", "mode=audit"}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, test.labels...)
			answer := n.create(newPod(conflict))
			if test.refused {
				if message := wantDenied(t, answer, http.StatusInternalServerError); !strings.Contains(message, "conflict") {
					t.Errorf("the refusal does not say what is wrong: %s", message)
				}
			} else {
				pod := answer.mustPod(t)
				wantPlacement(t, pod, "")
				wantUnpatched(t, pod)
			}
			if warned := mentions(answer.warnings, "in mode enforce this pod would be refused: "); warned != test.warned {
				t.Errorf("warnings %q, want any: %t", answer.warnings, test.warned)
			}
			// The next pod is none the worse for it.
			n.admitted(newPod())
		})
	}
}
