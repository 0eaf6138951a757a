package sources

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

func quickDirectory(path string) Source {
	return &directory{path: path, interval: time.Millisecond, settle: time.Millisecond}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a.rego": "package a\n"})
	deliveries := run(t, quickDirectory(dir))
	await(t, deliveries, holds(policies.Modules{"a.rego": "package a\n"}))
	writeFiles(t, dir, map[string]string{"b.rego": "package b\n"})
	await(t, deliveries, holds(policies.Modules{"a.rego": "package a\n", "b.rego": "package b\n"}))
}

// TestDirectoryHalfWritten: what cannot be read is an error without files, so that those
// before it stay, and is mended by the next reading.
func TestDirectoryHalfWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a.rego": "package a\n"})
	deliveries := run(t, quickDirectory(dir))
	await(t, deliveries, holds(policies.Modules{"a.rego": "package a\n"}))
	if err := os.Symlink("gone", filepath.Join(dir, "b.rego")); err != nil {
		t.Fatal(err)
	}
	if d := await(t, deliveries, fails("b.rego")); d.Modules != nil {
		t.Errorf("delivered %v", d.Modules)
	}
	if err := os.Remove(filepath.Join(dir, "b.rego")); err != nil {
		t.Fatal(err)
	}
	await(t, deliveries, holds(policies.Modules{"a.rego": "package a\n"}))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	await(t, deliveries, fails("read policy directory"))
}

// TestDirectorySwap: a mounted ConfigMap changes as a whole, by one rename of ..data.
func TestDirectorySwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publish := func(version, source string) {
		t.Helper()
		writeFiles(t, filepath.Join(dir, version), map[string]string{"a.rego": source, "b.rego": source})
		if err := os.Symlink(version, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	publish("..1", "package one\n")
	deliveries := run(t, quickDirectory(dir))
	for _, name := range []string{"a.rego", "b.rego"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	one := policies.Modules{"a.rego": "package one\n", "b.rego": "package one\n"}
	two := policies.Modules{"a.rego": "package two\n", "b.rego": "package two\n"}
	await(t, deliveries, holds(one))
	publish("..2", "package two\n")
	mixed := await(t, deliveries, func(d Delivery) bool { return !holds(one)(d) })
	if !holds(two)(mixed) {
		t.Errorf("after the swap: %+v", mixed)
	}
}
