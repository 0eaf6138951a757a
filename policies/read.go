package policies

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Source is where an author keeps a policy.
type Source struct {
	// Path is the directory, file, bundle or manifest, as it was given.
	Path    string
	Modules Modules

	prefix string // from a module's name to its file
}

// maxBundleBytes bounds what a bundle may unpack to.
const maxBundleBytes = 64 << 20

// Read reads a policy from a directory of .rego files, one .rego file, a bundle
// (.tar.gz; its signature is not checked), or a manifest of a ConfigMap whose keys are
// .rego files. On an error the source has what could be read.
func Read(file string) (*Source, error) {
	info, err := os.Stat(file)
	if err != nil {
		return &Source{Path: file}, fmt.Errorf("read policy: %w", err)
	}
	s := &Source{Path: file, Modules: Modules{}, prefix: file}
	switch {
	case info.IsDir():
		s.Modules, err = Directory(file)
	case strings.HasSuffix(file, ".rego"):
		s.prefix = filepath.Dir(file)
		var raw []byte
		raw, err = os.ReadFile(file)
		s.Modules[filepath.Base(file)] = string(raw)
	case strings.HasSuffix(file, ".tar.gz"), strings.HasSuffix(file, ".tgz"):
		s.Modules, err = readBundle(file)
	case strings.HasSuffix(file, ".yaml"), strings.HasSuffix(file, ".yml"):
		s.Modules, err = readConfigMap(file)
	default:
		err = fmt.Errorf("read policy %s: use a directory, a .rego file, a .tar.gz bundle, or a .yaml manifest of a ConfigMap", file)
	}
	var errs []error
	for _, leaf := range leaves(err) {
		var fault *fs.PathError
		if errors.As(leaf, &fault) && !strings.HasPrefix(fault.Path, file) {
			// A directory is read from within.
			leaf = &fs.PathError{Op: fault.Op, Path: filepath.Join(file, fault.Path), Err: fault.Err}
		}
		errs = append(errs, leaf)
	}
	return s, errors.Join(errs...)
}

// File is where a module of the source lies; other names are returned as they are.
func (s *Source) File(module string) string {
	if _, ok := s.Modules[module]; !ok {
		return module
	}
	return filepath.Join(s.prefix, module)
}

// Over returns the source's modules, in mode "extend" with the shipped policy.
func (s *Source) Over(mode string) (Modules, error) {
	switch mode {
	case "replace":
		return s.Modules, nil
	case "extend":
		return Shipped().Extend(s.Modules)
	}
	return nil, fmt.Errorf("--mode %q: use extend (add to the shipped policy) or replace", mode)
}

// Problems is [Problems] with files as the author finds them.
func (s *Source) Problems(err error) []Problem {
	found := Problems(err)
	for i := range found {
		found[i].File = s.File(found[i].File)
	}
	return found
}

func readBundle(file string) (Modules, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Modules are parsed once more with everything that a policy must pass, so that
	// faults are the same wherever a policy comes from; the raw text is what counts.
	reader := bundle.NewCustomReader(bundle.NewTarballLoaderWithBaseURL(f, "").WithSizeLimitBytes(maxBundleBytes)).
		WithSkipBundleVerification(true).WithSizeLimitBytes(maxBundleBytes).WithRegoVersion(ast.RegoV1).WithLazyLoadingMode(true)
	b, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", file, err)
	}
	modules := Modules{}
	for _, raw := range b.Raw {
		if path.Ext(raw.Path) == ".rego" {
			modules[strings.TrimPrefix(raw.Path, "/")] = string(raw.Value)
		}
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("read bundle %s: no .rego file in it", file)
	}
	return modules, nil
}

// readConfigMap reads every ConfigMap of a manifest.
func readConfigMap(file string) (Modules, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	manifests := &catalog.Manifests{}
	if err := manifests.Add(file, raw); err != nil {
		return nil, err
	}
	modules := Modules{}
	for i := range manifests.Documents {
		d := &manifests.Documents[i]
		object, ok := d.Object.(*corev1.ConfigMap)
		if !ok || len(d.Warnings) > 0 {
			return nil, fmt.Errorf("read ConfigMap %s: document %d is a %s: %s", file, d.Index, d.GVK.Kind,
				cmp.Or(strings.Join(d.Warnings, "; "), "write ConfigMaps only"))
		}
		check := checkConfigMapSize
		if object.Labels[catalog.LabelPolicy] == catalog.PolicyLabelValue {
			// As it would be watched.
			check = func(c *corev1.ConfigMap) error { _, err := ConfigMapModules(c); return err }
		}
		if err := check(object); err != nil {
			return nil, err
		}
		for key, source := range object.Data {
			if path.Ext(key) != ".rego" {
				continue
			}
			if _, twice := modules[key]; twice {
				return nil, fmt.Errorf("read ConfigMap %s: key %s is there twice: rename one", file, key)
			}
			modules[key] = source
		}
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("read ConfigMap %s: no key of data ends in .rego", file)
	}
	return modules, nil
}
