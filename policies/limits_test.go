package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// commented is a policy of a size, most of it comment.
func commented(module string, bytes int) string {
	line := "# " + strings.Repeat("x", 77) + "\n"
	module += strings.Repeat(line, (bytes-len(module))/len(line))
	return module + "#" + strings.Repeat(" ", bytes-len(module)-1)
}

func TestSize(t *testing.T) {
	t.Parallel()
	one := answer(keepTrusted)["p.rego"]
	tests := map[string]struct {
		modules Modules
		want    string // "" for a policy that is not too large
	}{
		"as much as there may be": {Modules{"p.rego": commented(one, MaxBytes)}, ""},
		"a byte more":             {Modules{"p.rego": commented(one, MaxBytes+1)}, "p.rego:1: the file has 1048577 bytes, and 1048576 is the most: a ConfigMap holds no more"},
		"2 MB in four files": {Modules{
			"p.rego": commented(one, 500_000), "a.rego": commented("package a\n", 500_000),
			"b.rego": commented("package b\n", 500_000), "c_test.rego": commented("package c_test\n", 500_000),
		}, "the policy has 2000000 bytes in 4 files, and 1048576 is the most"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := NewEngine().Load(t.Context(), test.modules, DefaultConfig())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
	t.Run("beside the shipped policy", func(t *testing.T) {
		t.Parallel()
		all, err := Shipped().Extend(Modules{"p.rego": commented("package router.custom\n", MaxBytes)})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkSize(all); err != nil {
			t.Error(err)
		}
	})
}

// TestSizeOfAConfigMap: what the API server would not store is not checked either.
func TestSizeOfAConfigMap(t *testing.T) {
	t.Parallel()
	manifest := func(data map[string]string) string {
		raw, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "team"}, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "team.yaml")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	half := commented("package router.custom\n", 1_000_000)
	_, err := Read(manifest(map[string]string{"a.rego": half, "b.rego": half}))
	want := fmt.Sprintf("ConfigMap team has 2000000 bytes of data, and %d is the most: the API server stores no more in one", MaxBytes)
	if found := Problems(err); len(found) != 1 || found[0].Message != want {
		t.Errorf("got %v", found)
	}
	if _, err := Read(manifest(map[string]string{"a.rego": half})); err != nil {
		t.Errorf("one of 1 MB: %v", err)
	}
}
