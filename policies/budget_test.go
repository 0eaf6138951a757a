package policies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// impatient are limits that a trivial policy keeps on any machine, and one that explodes
// does not.
func impatient() Limits {
	return Limits{Answer: 100 * time.Millisecond, Tests: time.Second, Load: time.Minute}
}

// stuck is an expression that takes two or three seconds in one builtin, which nothing stops: a
// regular expression of some hundred states over a megabyte.
const stuck = `regex.match("(0{1,10}){1,15}1", sprintf("%0999999d", [0]))`

// endless is one that takes hours, and can be stopped.
const endless = `some a in numbers.range(1, 10000)
	some b in numbers.range(1, 10000)
	some c in numbers.range(1, 10000)
	a * b * c == -1`

// TestLoadRefusesWhatTakesTooLong: with the question, the time, the budget and the place.
// It runs alone: what it leaves behind would hold up other tests.
func TestLoadRefusesWhatTakesTooLong(t *testing.T) {
	slow := func(body string) Modules {
		return Modules{"p.rego": "package router\n\ndecision := " + keepTrusted + " if not slow\n\nslow if {\n\t" + body + "\n}\n"}
	}
	tested := func(body string) Modules {
		return Modules{
			"p.rego":      answer(keepTrusted)["p.rego"],
			"p_test.rego": "package p_test\n\ntest_fine if true\n\ntest_slow if {\n\t" + body + "\n}\n",
		}
	}
	tests := map[string]struct {
		modules Modules
		where   string
		want    []string
	}{
		"rules that multiply":       {slow(endless), "p.rego:", []string{"an answer takes more than", "and 100ms is the most", "shown by self-test pod host network", "bound what is iterated over"}},
		"a sort of millions":        {slow("count(sort([x | some x in numbers.range(1, 100000000)])) == 0"), "p.rego:6", []string{"an answer takes more than"}},
		"a regular expression":      {slow(stuck), "p.rego:6", []string{"an answer takes more than"}},
		"rules that grow":           {Modules{"p.rego": exponential(30)}, "p.rego:", []string{"an answer takes more than"}},
		"a test that never ends":    {tested(endless), "p_test.rego:5", []string{"data.p_test.test_slow was stopped after", "test less at a time"}},
		"a test that does not stop": {tested(stuck), "p_test.rego:5", []string{"data.p_test.test_slow had not ended when the tests had taken 1s"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			engine := NewEngine(WithLimits(impatient()))
			defer settle(engine)
			if err := engine.Load(t.Context(), answer(keepTrusted), DefaultConfig()); err != nil {
				t.Fatal(err)
			}
			before, err := engine.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			found := Problems(engine.Load(t.Context(), test.modules, DefaultConfig()))
			if len(found) != 1 {
				t.Fatalf("want one problem, got %v", found)
			}
			line := found[0].String()
			if !strings.HasPrefix(line, test.where) {
				t.Errorf("want it at %s: %s", test.where, line)
			}
			for _, want := range test.want {
				if !strings.Contains(line, want) {
					t.Errorf("the problem lacks %q: %s", want, line)
				}
			}
			if after, err := engine.Snapshot(); after != before || err != nil {
				t.Errorf("what was in force did not stay: %v", err)
			}
		})
	}
}

// settle waits until nothing runs on.
func settle(engine *Engine) {
	for engine.Abandoned() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// TestSlowOverTheClustersCatalog: a policy may be fast over an empty one only.
func TestSlowOverTheClustersCatalog(t *testing.T) {
	t.Parallel()
	engine := NewEngine(WithLimits(impatient()))
	modules := Modules{"p.rego": "package router\n\ndecision := " + keepTrusted + " if not slow\n\nslow if {\n\tcount(data.catalog.runtimeClasses) > 0\n\t" + endless + "\n}\n"}
	if err := engine.Load(t.Context(), modules, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if err := engine.SetCatalog(t.Context(), catalog.Build([]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"}}, nil)); err != nil {
		t.Fatal(err)
	}
	found := Problems(engine.Load(t.Context(), modules, DefaultConfig()))
	if len(found) != 1 || found[0].File != "p.rego" || !strings.Contains(found[0].Message, "an answer takes more than") {
		t.Errorf("got %v", found)
	}
}

// exponential is a policy whose work doubles with every function.
func exponential(depth int) string {
	var s strings.Builder
	s.WriteString("package router\n\ndecision := " + keepTrusted + " if f0(1) == -1\n\ndefault decision := " + keepTrusted + "\n")
	for i := range depth {
		n := strings.Repeat("i", i)
		s.WriteString("\nf" + n + "(x) := f" + n + "i(2 * x) + f" + n + "i((2 * x) + 1)\n")
	}
	s.WriteString("\nf" + strings.Repeat("i", depth) + "(x) := x\n")
	return strings.Replace(s.String(), "f0(1)", "f(1)", 1)
}

// TestAbandonedWorkIsCounted until it ends.
func TestAbandonedWorkIsCounted(t *testing.T) {
	t.Parallel()
	var dog watchdog
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	release := make(chan struct{})
	_, err := watched(ctx, &dog, func(context.Context) (int, error) {
		<-release
		panic("too late for anybody to hear")
	})
	if !errors.Is(err, ErrAbandoned) || !strings.Contains(err.Error(), "enough") || dog.abandoned.Load() != 1 {
		t.Errorf("%v; abandoned: %d", err, dog.abandoned.Load())
	}
	close(release)
	for dog.abandoned.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestAPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != "ouch" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, _ = watched(t.Context(), &watchdog{}, func(context.Context) (int, error) { panic("ouch") })
}

// TestCallersDeadlineEndsALoad also where the policy does not notice. It runs alone, like the
// above.
func TestCallersDeadlineEndsALoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	engine := NewEngine()
	defer settle(engine)
	err := engine.Load(ctx, Modules{"p.rego": "package router\n\ndecision := " + keepTrusted + " if not " + stuck + "\n"}, DefaultConfig())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := engine.Snapshot(); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("a policy that was not checked is in force: %v", err)
	}
}

// TestTry changes nothing.
func TestTry(t *testing.T) {
	t.Parallel()
	engine := NewEngine()
	if err := engine.Try(t.Context(), answer(keepTrusted), DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Try(t.Context(), Modules{}, DefaultConfig()); err == nil {
		t.Error("nothing is a policy")
	}
	if _, err := engine.Snapshot(); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("what was tried is in force: %v", err)
	}
}
