package decisionlog

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// numbered is a decision whose UID is another each time.
func numbered(i int, action policies.Action) *webhook.Decision {
	request := review("n", "", "")
	request.UID = types.UID("5f1c2f9e-0000-4000-8000-" + strconv.Itoa(i))
	return &webhook.Decision{Request: &request, Route: webhook.Route{Action: action}}
}

func TestSample(t *testing.T) {
	t.Parallel()
	const n = 20000
	for _, share := range []float64{0, 0.001, 0.25, 0.5, 1} {
		for action, sample := range map[policies.Action]Sample{
			policies.Route: {Allowed: share}, policies.Keep: {Allowed: share}, policies.Exempt: {Allowed: share}, policies.Deny: {Denied: share},
		} {
			taken := 0
			for i := range n {
				if sample.takes(numbered(i, action)) {
					taken++
				}
			}
			// Five standard deviations, and the UIDs are the same each time.
			if want := share * n; float64(taken) < want-360 || float64(taken) > want+360 || share == 0 && taken > 0 || share == 1 && taken < n {
				t.Errorf("%s: %d of %d, want a share of %v", action, taken, n, share)
			}
		}
	}
}

// TestSamplesAgree: a smaller sample is part of a larger one, whoever takes it.
func TestSamplesAgree(t *testing.T) {
	t.Parallel()
	small, large := Sample{Allowed: 0.1}, Sample{Allowed: 0.3}
	for i := range 5000 {
		d := numbered(i, policies.Route)
		if small.takes(d) && !large.takes(d) {
			t.Fatalf("%s is of the sample of 0.1, and not of 0.3", d.Request.UID)
		}
	}
}

func TestErrorsAreNeverLeftOut(t *testing.T) {
	t.Parallel()
	if none := (Sample{}); !none.takes(failed()) {
		t.Error("an error was left out")
	}
}

// TestADecisionThatIsNotToldCostsNothing: most are not. Not parallel: it counts allocations.
func TestADecisionThatIsNotToldCostsNothing(t *testing.T) {
	l, err := New(Config{Options: Options{Sample: Sample{Allowed: 0.0001, Denied: 1}, Events: true}})
	if err != nil {
		t.Fatal(err)
	}
	d := decide(t, "untrusted", plain)
	if got := testing.AllocsPerRun(100, func() { l.Decided(t.Context(), d) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
