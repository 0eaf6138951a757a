package policies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHints: what an author is told about faults that are easy to make. Each policy is
// the shipped one with these lines in package router.custom.
func TestHints(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		place  string
		hint   string
	}{
		"field":                {`denials contains "x" if input.pod.spec.hostNetwrok`, "p.rego:3:25", "did you mean hostNetwork?"},
		"field of a list":      {`denials contains "x" if input.pod.spec.containers[0].imgae`, "p.rego:3:25", "did you mean image?"},
		"far from any":         {`denials contains "x" if input.pod.spec.zzzzzzzz`, "p.rego:3:25", ""},
		"below a string":       {`denials contains "x" if input.pod.metadata.name.first`, "p.rego:3:25", "the schema has nothing below input.pod.metadata.name"},
		"package":              {`denials contains "x" if data.router.trsut.level.name == "a"`, "p.rego:3:25", "did you mean data.router.trust.level.name?"},
		"rule":                 {`denials contains "x" if data.router.selection.sandboxde`, "p.rego:3:25", "did you mean data.router.selection.sandboxed?"},
		"configuration":        {`denials contains "x" if data.config.levles[0].name == "a"`, "p.rego:3:25", "did you mean data.config.levels[0].name?"},
		"document":             {`denials contains "x" if data.catalgo.runtimeClasses`, "p.rego:3:25", "did you mean data.catalog.runtimeClasses?"},
		"function":             {`denials contains "x" if startwith(input.pod.metadata.name, "a")`, "p.rego:3:25", "did you mean startswith?"},
		"network":              {`denials contains "x" if net.lookup_ip_addr("a")`, "p.rego:3:25", "net.lookup_ip_addr is not allowed in policies: a decision must not depend on the network, nor send a pod there"},
		"clock":                {`denials contains "x" if time.now_ns() > 0`, "p.rego:3:25", "time.now_ns is not allowed in policies: a decision must not depend on the clock: use input.request.date, the UTC day"},
		"chance":               {`denials contains "x" if rand.intn("a", 2) == 1`, "p.rego:3:25", "rand.intn is not allowed in policies: one pod must get one answer, whoever asks and whenever"},
		"process":              {`denials contains "x" if opa.runtime().env`, "p.rego:3:25", "opa.runtime is not allowed in policies: the process and its environment are none of a policy's business"},
		"unused variable":      {"denials contains \"x\" if {\n\ty := 1\n\tinput.pod\n}", "p.rego:4:2", "use the variable, or write _ in its place"},
		"unused import":        {"import data.router.trust\n\ndenials contains \"x\" if input.pod", "p.rego:3:1", "remove the import"},
		"Rego v0":              {`denials["x"] { input.pod }`, "p.rego:3:1", "policies are Rego v1: `if` before a body, `contains` for the members of a set"},
		"builtin that is lost": {`denials contains "x" if to_number(input.pod.metadata.name)`, "p.rego:3:25", "a builtin was given what it cannot take: test the value first, such as with is_string or regex.match"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Shipped().Extend(Modules{"p.rego": "package router.custom\n\n" + test.source + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			problems := Problems(NewEngine().Load(t.Context(), all, DefaultConfig()))
			if len(problems) == 0 {
				t.Fatal("the policy was accepted")
			}
			p := problems[0]
			if place := fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column); place != test.place || p.Hint != test.hint {
				t.Errorf("%s\nwant %s, hint %q", p, test.place, test.hint)
			}
		})
	}
}

// TestProblems: each joined fault is one problem on one line, in the order of places.
func TestProblems(t *testing.T) {
	t.Parallel()
	undefined := &LocatedError{File: "b.rego", Line: 2, Column: 1, Err: &Fault{Kind: Undefined, Err: errors.New("undefined")}}
	err := fmt.Errorf("load policy: %w", errors.Join(
		&SelfTestError{SelfTest{Name: "volumes"}, undefined},
		&SelfTestError{SelfTest{Name: "plain"}, undefined},
		&SelfTestError{SelfTest{Name: "plain"}, undefined}, // at another trust level
		errors.New("no place\n\tand two lines"),
		fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "a.rego", Err: fs.ErrPermission}),
		fmt.Errorf("more: %w", errors.Join(&LocatedError{File: "b.rego", Line: 1, Column: 7, Hint: "mend it", Err: errors.New("x")})),
	))
	var got []string
	for _, p := range Problems(err) {
		got = append(got, p.String())
	}
	want := []string{
		"no place and two lines",
		"a.rego: open: permission denied",
		"b.rego:1:7: x (mend it)",
		"b.rego:2:1: policy error (undefined): undefined; shown by self-test pod plain, volumes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if Problems(nil) != nil {
		t.Error("no error is a problem")
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\n"
	directory := t.TempDir()
	for name, test := range map[string]struct{ content, want string }{
		"policy.txt":     {"", "use a directory, a .rego file"},
		"kind.yaml":      {"apiVersion: v1\nkind: Secret\nmetadata: {name: p}\n", "document 1 is a Secret: write ConfigMaps only"},
		"field.yaml":     {head + "date: {}\n", "document 1 is a ConfigMap: unknown field \"date\""},
		"empty.yaml":     {head, "no key of data ends in .rego"},
		"twice.yaml":     {head + "data: {a.rego: package a}\n---\n" + head + "data: {a.rego: package b}\n", "key a.rego is there twice"},
		"broken.yaml":    {head + "data: [\n", "document 1 (line 1)"},
		"broken.tar.gz":  {"no gzip", "read bundle"},
		"other.tar.gz/x": {"", "no .rego file in it"}, // a directory, whatever its name
	} {
		file := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(directory, strings.TrimSuffix(name, "/x"))
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
}

// TestProblemOfAWrappedList: OPA's list of errors does not unwrap, and one of it is no
// list.
func TestProblemOfAWrappedList(t *testing.T) {
	t.Parallel()
	_, err := parse(Modules{"p.rego": "package p\n\na if {\n"})
	problems := Problems(fmt.Errorf("fetch bundle: %w", err))
	if len(problems) != 1 || problems[0].File != "p.rego" || problems[0].Line != 4 {
		t.Errorf("%+v", problems)
	}
}
