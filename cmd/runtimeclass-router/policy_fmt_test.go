package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	unformatted = "package router.custom\ndenials contains   \"no\" if {input.pod.spec.hostNetwork}\n"
	formatted   = "package router.custom\n\ndenials contains \"no\" if input.pod.spec.hostNetwork\n"
)

func TestPolicyFmt(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	file, fine := filepath.Join(directory, "custom.rego"), filepath.Join(directory, "fine.rego")
	writeFile(t, file, unformatted)
	writeFile(t, fine, formatted)
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if out, _, err := run(t, "", "policy", "fmt", file); err != nil || out != formatted {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _, err := run(t, "", "policy", "fmt", "--list", directory); err != nil || out != file+"\n" {
		t.Errorf("--list: %v\n%s", err, out)
	}
	out, _, err := run(t, "", "policy", "fmt", "--diff", directory)
	if err != nil {
		t.Error(err)
	}
	golden(t, "fmt.diff", strings.ReplaceAll(out, directory, "DIRECTORY"))
	if out, _, err := run(t, "", "policy", "fmt", "--write", directory); err != nil || out != "" {
		t.Errorf("--write: %v\n%s", err, out)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != formatted {
		t.Errorf("--write: %v\n%s", err, got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("--write changes the file's mode: %v %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 2 {
		t.Errorf("--write leaves files behind: %v, %v", entries, err)
	}
}

// TestPolicyFmtReportsBrokenFiles beside formatting the others.
func TestPolicyFmtReportsBrokenFiles(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	broken := filepath.Join(directory, "broken.rego")
	writeFile(t, broken, "package p\n\nx := {")
	writeFile(t, filepath.Join(directory, "custom.rego"), unformatted)
	out, errOut, err := run(t, "", "policy", "fmt", "-l", directory, filepath.Join(directory, "absent"))
	if status(err) != 1 || out != filepath.Join(directory, "custom.rego")+"\n" {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{broken + ":3", "rego_parse_error", filepath.Join(directory, "absent") + ": lstat: no such file"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("lacks %q:\n%s", want, errOut)
		}
	}
}
