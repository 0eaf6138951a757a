package policies

import (
	"errors"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// answer is a policy that answers every pod with one decision.
func answer(decision string) Modules {
	return Modules{"p.rego": "package router\n\ndecision := " + decision + "\n"}
}

const keepTrusted = `{"action": "keep", "trust": "trusted", "reasons": [], "warnings": []}`

// TestLoadRefuses names what each broken policy is told, with file and line.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		modules Modules
		want    []string
	}{
		"syntax error":            {Modules{"p.rego": "package router\n\ndecision := {"}, []string{"p.rego:3", "rego_parse_error"}},
		"two syntax errors":       {Modules{"a.rego": "package router\nx :=", "b.rego": "package router\ny :="}, []string{"a.rego:2", "b.rego:2"}},
		"misspelt pod field":      {answer(keepTrusted + " if input.pod.spec.hostNetwrok"), []string{"p.rego:3", "undefined ref: input.pod.spec.hostNetwrok"}},
		"misspelt request field":  {answer(keepTrusted + " if input.request.dat"), []string{"p.rego:3", "input.request.dat"}},
		"misspelt other package":  {answer(keepTrusted + " if data.router.trsut.level"), []string{"p.rego:3", "data.router.trsut.level"}},
		"misspelt data":           {answer(keepTrusted + " if data.catalgo"), []string{"p.rego:3", "data.catalgo"}},
		"misspelt configuration":  {answer(keepTrusted + " if data.config.levls"), []string{"p.rego:3", "data.config.levls"}},
		"unused variable":         {answer(keepTrusted + " if {\n\tx := 1\n}"), []string{"p.rego:4", "assigned var x unused"}},
		"http.send":               {answer(keepTrusted + ` if http.send({"method": "get", "url": "https://example.com"})`), []string{"p.rego:3", "http.send"}},
		"the clock":               {answer(keepTrusted + " if time.now_ns() > 0"), []string{"p.rego:3", "time.now_ns"}},
		"the process":             {answer(keepTrusted + " if opa.runtime()"), []string{"p.rego:3", "opa.runtime"}},
		"chance":                  {answer(keepTrusted + ` if rand.intn("a", 2) == 1`), []string{"p.rego:3", "rand.intn"}},
		"no entry point":          {Modules{"p.rego": "package router\n\nother := true\n"}, []string{"no rule data.router.decision"}},
		"nothing":                 {Modules{}, []string{"no rule data.router.decision"}},
		"undefined":               {answer(keepTrusted + " if input.pod.spec.hostNetwork"), []string{"self-test pod", "undefined for this pod"}},
		"conflict":                {answer(keepTrusted + "\n\ndecision := " + strings.Replace(keepTrusted, "keep", "exempt", 1) + " if input.pod.spec.hostNetwork"), []string{"self-test pod \"host network\"", "p.rego:3", "conflicting values"}},
		"builtin error":           {answer(keepTrusted + ` if to_number(input.pod.metadata.name)`), []string{"self-test pod", "p.rego:3", "to_number"}},
		"unknown key":             {answer(strings.Replace(keepTrusted, "warnings", "warning", 1)), []string{"self-test pod", `unknown field "warning"`}},
		"wrong type":              {answer(strings.Replace(keepTrusted, "[]", `"none"`, 1)), []string{"self-test pod", "reasons"}},
		"unknown action":          {answer(strings.Replace(keepTrusted, "keep", "ignore", 1)), []string{"self-test pod", `action "ignore" is not one of`}},
		"no trust":                {answer(`{"action": "keep"}`), []string{"self-test pod", "trust is missing"}},
		"not an object":           {answer("true"), []string{"self-test pod"}},
		"failing test":            {Modules{"p.rego": answer(keepTrusted)["p.rego"], "p_test.rego": "package router_test\n\ntest_it if data.router.decision.action == \"deny\"\n"}, []string{"p_test.rego:3", "test_it failed"}},
		"test that does not load": {Modules{"p.rego": answer(keepTrusted)["p.rego"], "p_test.rego": "package router_test\n\ntest_it if input.pod.speck\n"}, []string{"p_test.rego:3", "input.pod.speck"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := NewEngine()
			if err := engine.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
				t.Fatal(err)
			}
			before, err := engine.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			err = engine.Load(t.Context(), test.modules, DefaultConfig())
			if err == nil {
				t.Fatal("the policy was accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if after, err := engine.Snapshot(); after != before || err != nil {
				t.Errorf("what was in force did not stay: %v", err)
			}
		})
	}
}

func TestLoadAccepts(t *testing.T) {
	t.Parallel()
	hooks := Modules{
		"team.rego": "package router.custom\n\ndenials contains \"no\" if input.pod.metadata.labels.team == \"x\"\n",
		"team_test.rego": `package team_test

test_it if data.router.custom.denials == {"no"} with input.pod.metadata.labels as {"team": "x"}
`,
	}
	all, err := Shipped().Extend(hooks)
	if err != nil {
		t.Fatal(err)
	}
	engine := NewEngine()
	if _, err := engine.Snapshot(); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("an engine without a policy: %v", err)
	}
	if err := engine.Load(t.Context(), all, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Namespace: catalog.Namespace{Name: "ns"}, Pod: mustRead(`{"metadata": {"labels": {"team": "x"}}, "spec": {"containers": []}}`)}
	got, err := s.Decide(t.Context(), in)
	if err != nil || got.Action != Deny {
		t.Errorf("the hook did not fire: %+v, %v", got, err)
	}
}

func TestExtendRefusesAShippedName(t *testing.T) {
	t.Parallel()
	if _, err := Shipped().Extend(Modules{"rego/trust.rego": ""}); err == nil {
		t.Error("a shipped file was replaced in silence")
	}
}

// TestRevision: what decides has a revision of its own; what only checks has not.
func TestRevision(t *testing.T) {
	t.Parallel()
	base := answer(keepTrusted)
	revision := func(m Modules, c Config) string {
		r, err := revisionOf(m, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := revision(base, DefaultConfig())
	tested, err := base.Extend(Modules{"p_test.rego": "package p_test"})
	if err != nil {
		t.Fatal(err)
	}
	if got := revision(tested, DefaultConfig()); got != want {
		t.Error("a test changes the revision")
	}
	other := DefaultConfig()
	other.GPURuntimes = []string{"kata-qemu"}
	if revision(base, other) == want || revision(Shipped(), DefaultConfig()) == want {
		t.Error("another policy or configuration has the same revision")
	}
}
