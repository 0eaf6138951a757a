package policies

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Modules are Rego files by name; names appear in errors.
type Modules map[string]string

//go:embed rego/*.rego
var shipped embed.FS

// Shipped returns the policy that comes with the product, without its tests: those
// are run when the product is built.
func Shipped() Modules {
	modules, err := readModules(shipped)
	if err != nil {
		panic(fmt.Sprintf("embedded policy: %v", err)) // a broken build
	}
	maps.DeleteFunc(modules, func(name, _ string) bool { return isTest(name) })
	return modules
}

// Directory reads every .rego file below dir, tests included. A mounted ConfigMap
// shows each file three times, under its own name and twice more behind the ..data
// link that Kubernetes swaps in one step: there the link's target is read.
func Directory(dir string) (Modules, error) {
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = target
	}
	modules, err := readModules(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read policy directory %s: %w", dir, err)
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("read policy directory %s: no .rego file in it", dir)
	}
	return modules, nil
}

// Extend returns the modules with others added; a name that both have is an error,
// since one would silently replace the other.
func (m Modules) Extend(others Modules) (Modules, error) {
	all := maps.Clone(m)
	for name, source := range others {
		if _, ok := all[name]; ok {
			return nil, fmt.Errorf("policy file %s has the name of a shipped one: rename it", name)
		}
		all[name] = source
	}
	return all, nil
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.rego") }

// readModules reads every .rego file; the error joins those that cannot be read.
func readModules(files fs.FS) (Modules, error) {
	modules := Modules{}
	var errs []error
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		if entry.IsDir() || filepath.Ext(name) != ".rego" {
			return nil
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		modules[name] = string(raw)
		return nil
	})
	return modules, errors.Join(append(errs, err)...)
}
