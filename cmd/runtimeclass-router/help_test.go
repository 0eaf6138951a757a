package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand walks a tree of commands.
func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, visit)
	}
}

// TestHelp: every command says what it is for, and its examples are command lines that it
// takes.
func TestHelp(t *testing.T) {
	t.Parallel()
	root := newCommand()
	everyCommand(root, func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.Contains(cmd.Short, "\n") {
				t.Errorf("Short is %q: want one line, without a full stop", cmd.Short)
			}
			if cmd.Long == "" && cmd.HasAvailableFlags() {
				t.Error("there are flags, and no Long that says what they change")
			}
			calls := calls(cmd.Example)
			if len(calls) == 0 {
				t.Errorf("no example calls the program:\n%s", cmd.Example)
			}
			for _, call := range calls {
				found, arguments, err := root.Find(call)
				if err != nil || found != cmd && !cmd.HasSubCommands() {
					t.Fatalf("the example %q calls %q: %v", call, found.CommandPath(), err)
				}
				if err := found.ParseFlags(arguments); err != nil {
					t.Errorf("%q: %v", call, err)
				} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
					t.Errorf("%q: %v", call, err)
				}
			}
		})
	})
}

// calls are the arguments with which an example calls the program, line by line. A line
// may go on after a backslash, and end in a pipe of others.
func calls(example string) (found [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(example, "\\\n", " ")) {
		for command := range strings.SplitSeq(line, "|") {
			if words := strings.Fields(command); len(words) > 0 && words[0] == "runtimeclass-router" {
				found = append(found, words[1:])
			}
		}
	}
	return found
}

// TestOutputIsPlain: no command colours what it prints, so there is nothing that NO_COLOR
// or a pipe would have to turn off, and none may begin to without asking for them.
func TestOutputIsPlain(t *testing.T) {
	for _, variable := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		t.Setenv(variable, "1")
	}
	for _, args := range [][]string{
		{"--help"},
		{"route", "-f", examples},
		{"policy", "test", "testdata/policy/tested"},
		{"policy", "check", "testdata/policy/broken/misspelt-rule"},
		{"node-config", "--cri", "containerd"},
		{"node-config", "--cri", "podman"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			out, errOut, err := run(t, "", args...)
			if out+errOut == "" {
				t.Fatalf("nothing is printed: %v", err)
			}
			if strings.Contains(out+errOut, "\x1b") {
				t.Errorf("there are terminal escapes:\n%q", out+errOut)
			}
		})
	}
}
