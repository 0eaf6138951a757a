package benchmark

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// expanded undoes, as the kubelet does, what keeps a command from it. It fails on what
// the kubelet would take for a variable.
func expanded(t *testing.T, s string) string {
	t.Helper()
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '$' && i+1 < len(s) {
			switch s[i+1] {
			case '(':
				t.Errorf("the kubelet would look for a variable at %q", s[i:])
			case '$':
				i++
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// execute runs a workload's command as a container would, with a file for the
// termination message and a folder for /tmp.
func execute(t *testing.T, w Workload) (message string, err error) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "termination-log")
	arguments := w.arguments()
	for i := range arguments {
		arguments[i] = strings.NewReplacer("/dev/termination-log", log, "/tmp/", dir+"/").Replace(expanded(t, arguments[i]))
	}
	command := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
	out, err := command.CombinedOutput()
	if len(out) > 0 {
		t.Logf("%s", out)
	}
	raw, readErr := os.ReadFile(log)
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	return string(raw), err
}

// Every workload of the package runs in a POSIX shell and tells how long it took.
func TestWorkloadsRun(t *testing.T) {
	t.Parallel()
	for _, w := range append(builtin(), start(), Workload{"mine", `test $(echo a) = a && test $((1 + 1)) = 2 && test $$ -gt 1 && x=y && test $x = y`}) {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			message, err := execute(t, w)
			if err != nil {
				t.Fatal(err)
			}
			took, err := elapsed(message)
			if err != nil {
				t.Fatal(err)
			}
			if w.Name == Start && took < 1990*time.Millisecond || took > time.Since(began)+20*time.Millisecond {
				t.Errorf("%s of %s", took, time.Since(began))
			}
		})
	}
	// One that fails keeps its status, and leaves the message to its log.
	message, err := execute(t, Workload{"fails", "exit 3"})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || message != "" {
		t.Errorf("%v %q", err, message)
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]time.Duration{
		"10.00 10.00\n":        0,
		"0.29 0.58":            290 * time.Millisecond,
		"1234567.89 1234568.9": 1010 * time.Millisecond,
	} {
		if got, err := elapsed(message); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", message, got, err, want)
		}
	}
	for _, message := range []string{"", "1.0", "1 2 3", "a b", "2 1", "1,5 2,5"} {
		if _, err := elapsed(message); err == nil {
			t.Errorf("%q is taken for two uptimes", message)
		}
	}
}
