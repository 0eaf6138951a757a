package docs

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A command of a page may be the product's own command line, or cat of a file.
var product = []string{"go", "run", "./cmd/runtimeclass-router"}

// TestConsole runs the commands of console blocks, the lines that start with "$ ",
// and compares what each prints with the lines below it, standard error first. A
// line "..." stands for any number of lines. Spaces at the end of a line do not count,
// nor do line numbers of the shipped policy. A command without output on the page must end with status 0; where it does
// not, the page says "exit status N", as go run does.
func TestConsole(t *testing.T) {
	t.Parallel()
	for _, b := range blocksOf(t, readPages(t), "console") {
		t.Run(b.String(), func(t *testing.T) {
			for _, c := range commands(t, &b) {
				got, ok := run(t, c.arguments)
				if !ok && len(c.output) == 0 {
					t.Errorf("$ %s\nfailed:\n%s", strings.Join(c.arguments, " "), strings.Join(got, "\n"))
				}
				if len(c.output) > 0 && !matches(c.output, got) {
					t.Errorf("$ %s\nthe page shows:\n%s\n\nit prints:\n%s", strings.Join(c.arguments, " "),
						strings.Join(c.output, "\n"), strings.Join(got, "\n"))
				}
			}
		})
	}
}

type command struct {
	arguments []string
	output    []string
}

func commands(t *testing.T, b *block) []command {
	t.Helper()
	var found []command
	for _, l := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		text, isCommand := strings.CutPrefix(l, "$ ")
		switch {
		case isCommand:
			if strings.ContainsAny(text, "|&;<>$`\"'\\*") {
				t.Fatalf("$ %s: no shell runs this block: mark it sh", text)
			}
			found = append(found, command{arguments: strings.Fields(text)})
		case len(found) == 0:
			t.Fatal("the block does not start with a command")
		default:
			last := &found[len(found)-1]
			last.output = append(last.output, normal(l))
		}
	}
	return found
}

// run returns what a command prints, line by line, and whether it ended with status 0.
func run(t *testing.T, arguments []string) (lines []string, ok bool) {
	t.Helper()
	isProduct := len(arguments) > len(product) && slices.Equal(arguments[:len(product)], product)
	isCat := len(arguments) == 2 && arguments[0] == "cat"
	if !isProduct && !isCat {
		t.Fatalf("$ %s: only `go run ./cmd/runtimeclass-router` and `cat FILE` are run: mark the block sh", strings.Join(arguments, " "))
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimRight(stderr.String()+stdout.String(), "\n"), "\n") {
		lines = append(lines, normal(l))
	}
	return lines, err == nil
}

var policyLine = regexp.MustCompile(`(rego/[a-z]+\.rego):\d+`)

// normal leaves of a line what counts.
func normal(l string) string {
	return policyLine.ReplaceAllString(strings.TrimRight(l, " "), "$1:N")
}

const ellipsis = "..."

// matches reports whether got is what the page shows.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] != ellipsis {
		return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
	}
	for skipped := 0; skipped <= len(got); skipped++ {
		if matches(want[1:], got[skipped:]) {
			return true
		}
	}
	return false
}

func TestMatches(t *testing.T) {
	t.Parallel()
	got := []string{"a", "b", "c", "b", "d"}
	for want, answer := range map[string]bool{
		"a b c b d": true, "a ... d": true, "... b d": true, "a b ...": true, "...": true, "a ... b ... d": true,
		"a b c": false, "b ...": false, "a ... c": false, "a ... x ... d": false, "a b c b d e": false,
	} {
		if matches(strings.Fields(want), got) != answer {
			t.Errorf("%s: want %v", want, answer)
		}
	}
}
