package policies

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// TestDecideAnswersAtItsDeadline although the evaluation goes on for seconds: a pod that
// no self-test pod is like may be the first to show it.
func TestDecideAnswersAtItsDeadline(t *testing.T) {
	parsed, err := parse(answer(keepTrusted + " if not " + stuck))
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := compile(parsed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSnapshot(t.Context(), &policy{compiler: compiler, config: DefaultConfig()}, catalog.Build(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	engine := NewEngine()
	in := Input{Namespace: catalog.Namespace{Name: "ns"}, Pod: []byte(`{"metadata": {}, "spec": {"containers": []}}`)}
	var fault *Fault
	// On a busy machine the deadline may pass before the builtin is reached: OPA notices then.
	for deadline := 20 * time.Millisecond; engine.Abandoned() == 0 && deadline < time.Second; deadline *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		_, err = engine.Decide(ctx, s, in)
		cancel()
		if !errors.As(err, &fault) || fault.Kind != TimedOut {
			t.Fatalf("got %v", err)
		}
	}
	if n := engine.Abandoned(); n != 1 || !errors.Is(err, ErrAbandoned) {
		t.Errorf("%d evaluations are left behind, want 1: %v", n, err)
	}
	settle(engine)
	engine.watchdog.abandoned.Add(maxAbandoned)
	if _, err := engine.Decide(t.Context(), s, in); !errors.As(err, &fault) || fault.Kind != TimedOut {
		t.Errorf("one more was begun: %v", err)
	}
}
