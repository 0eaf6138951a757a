package conformance

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

//go:embed shapes
var files embed.FS

// The namespaces that shapes are created in.
const (
	Untrusted = "team-untrusted"
	Trusted   = "team-trusted"
)

// tenant stands for the namespace of a review in its file.
const tenant = "TENANT"

// Kinds are the kinds of fault that a shape may belong to, in the order of a report.
var Kinds = []string{"host-access", "devices", "placement", "preset-class", "injected-containers", "controllers", "other-nodes", "plain", "updates"}

// Shape is a pod, or a review of one, as public projects make it, and what may become
// of it.
type Shape struct {
	// Name is that of the file, without its extension.
	Name string `json:"-"`
	// About says what is easily got wrong.
	About string `json:"about"`
	// Sources are the public pages that the shape is taken from.
	Sources []string `json:"sources"`
	// Kind is one of [Kinds].
	Kind string `json:"kind"`
	// Namespace is where the shape belongs; empty for one that is tried in both teams'.
	Namespace string `json:"namespace"`
	// Expect are the verdicts that are allowed, by trust of the namespace.
	Expect Expect `json:"expect"`
	// Raw is the Pod or AdmissionReview as JSON, with every field that the file has.
	Raw json.RawMessage `json:"-"`
	// Review: Raw is an AdmissionReview. Use [Shape.In] to name its namespace.
	Review bool `json:"-"`
}

// Expect are the allowed verdicts of a shape.
type Expect struct {
	Untrusted []Verdict `json:"untrusted"`
	Trusted   []Verdict `json:"trusted"`
}

// In returns the verdicts that are allowed in a namespace.
func (e *Expect) In(namespace string) []Verdict {
	if namespace == Trusted {
		return e.Trusted
	}
	return e.Untrusted
}

// In is the shape's object for a namespace.
func (s *Shape) In(namespace string) json.RawMessage {
	return bytes.ReplaceAll(s.Raw, []byte(tenant), []byte(namespace))
}

// Shapes returns all shapes, sorted by name.
func Shapes() ([]Shape, error) {
	paths, err := fs.Glob(files, "shapes/*.yaml")
	if err != nil {
		return nil, err
	}
	var shapes []Shape
	var errs []error
	for _, file := range paths {
		if file == clusterFile {
			continue
		}
		shape, err := read(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		shapes = append(shapes, shape)
	}
	return shapes, errors.Join(errs...)
}

// read reads a file of two documents: the shape's head, and its object.
func read(file string) (Shape, error) {
	raw, err := files.ReadFile(file)
	if err != nil {
		return Shape{}, err
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	head, err := reader.Read()
	if err != nil {
		return Shape{}, err
	}
	object, err := reader.Read()
	if err != nil {
		return Shape{}, fmt.Errorf("second document: %w", err)
	}
	shape := Shape{Name: strings.TrimSuffix(path.Base(file), ".yaml")}
	if err := sigsyaml.UnmarshalStrict(head, &shape); err != nil {
		return Shape{}, err
	}
	if shape.Raw, err = sigsyaml.YAMLToJSONStrict(object); err != nil {
		return Shape{}, err
	}
	var kind struct{ Kind string }
	if err := json.Unmarshal(shape.Raw, &kind); err != nil {
		return Shape{}, err
	}
	shape.Review = kind.Kind == "AdmissionReview"
	return shape, shape.validate()
}

func (s *Shape) validate() error {
	var errs []error
	if s.About == "" || len(s.Sources) == 0 {
		errs = append(errs, errors.New("about and sources are mandatory"))
	}
	if !slices.Contains(Kinds, s.Kind) {
		errs = append(errs, fmt.Errorf("kind %q: use one of %v", s.Kind, Kinds))
	}
	for _, verdicts := range [][]Verdict{s.Expect.Untrusted, s.Expect.Trusted} {
		if len(verdicts) == 0 {
			errs = append(errs, errors.New("expect names no verdict"))
		}
		for _, v := range verdicts {
			if !v.known() {
				errs = append(errs, fmt.Errorf("verdict %q is not known", v))
			}
		}
	}
	return errors.Join(errs...)
}

const clusterFile = "shapes/cluster.yaml"

// Cluster are the RuntimeClasses, Nodes and Namespaces that shapes are judged over.
func Cluster() (*catalog.Manifests, error) {
	raw, err := files.ReadFile(clusterFile)
	if err != nil {
		return nil, err
	}
	cluster := &catalog.Manifests{}
	return cluster, cluster.Add(clusterFile, raw)
}
