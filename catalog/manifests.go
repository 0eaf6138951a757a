package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Manifests are the objects of a set of YAML or JSON files.
type Manifests struct {
	// Documents are in the order of the files and of the documents in them.
	Documents []Document
}

// ReadManifests reads files, directories (every .yaml, .yml and .json below
// them) and, for the path "-", stdin, which may be nil where that is a fault. A broken document does not hide the
// others: everything that could be read is returned, beside an error that joins
// one [DocumentError] for each that could not.
func ReadManifests(paths []string, stdin io.Reader) (*Manifests, error) {
	m := &Manifests{}
	var errs []error
	for _, path := range paths {
		files, err := expand(path)
		errs = append(errs, err)
		for _, file := range files {
			raw, err := readFile(file, stdin)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, m.Add(file, raw))
		}
	}
	return m, errors.Join(errs...)
}

// Add appends the documents of one file's content.
func (m *Manifests) Add(file string, raw []byte) error {
	documents, err := decodeDocuments(file, raw)
	m.Documents = append(m.Documents, documents...)
	return err
}

// Catalog builds the catalog of the RuntimeClasses and Nodes among the
// documents.
func (m *Manifests) Catalog() *Catalog {
	return Build(objects[*nodev1.RuntimeClass](m), objects[*corev1.Node](m))
}

// HasRuntimeClasses reports whether the documents describe a cluster.
func (m *Manifests) HasRuntimeClasses() bool { return len(objects[*nodev1.RuntimeClass](m)) > 0 }

// Namespaces returns the namespaces among the documents, by name.
func (m *Manifests) Namespaces() map[string]*Namespace {
	namespaces := map[string]*Namespace{}
	for _, ns := range objects[*corev1.Namespace](m) {
		namespaces[ns.Name] = &Namespace{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}
	}
	return namespaces
}

func objects[T any](m *Manifests) []T {
	var found []T
	for i := range m.Documents {
		if o, ok := m.Documents[i].Object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// expand lists the manifest files that a path stands for, sorted.
func expand(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))) {
			files = append(files, file)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("read manifests: %s holds no .yaml, .yml or .json file", path)
	}
	return files, err
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path != Stdin {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		return raw, nil
	}
	if stdin == nil {
		return nil, errors.New("read manifests: standard input is not read here: name a file")
	}
	var buffer bytes.Buffer
	if _, err := buffer.ReadFrom(stdin); err != nil {
		return nil, fmt.Errorf("read manifests from standard input: %w", err)
	}
	return buffer.Bytes(), nil
}
