package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// fixture is a directory that says what comes out for a pod.
type fixture struct {
	name, directory string

	pod        *catalog.Document
	namespaces map[string]*catalog.Namespace
	cluster    *catalog.Catalog
	expect     expectation

	input *policies.Input // nil until the fixture was run
}

// expectation is expect.yaml; what is left out is not compared.
type expectation struct {
	Action           *policies.Action   `json:"action,omitempty"`
	Trust            *string            `json:"trust,omitempty"`
	RuntimeClassName *string            `json:"runtimeClassName,omitempty"`
	Isolation        *catalog.Isolation `json:"isolation,omitempty"`
	// Each of these is part of one of the route's.
	Reasons  []string `json:"reasons,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// findFixtures lists the directories below path that hold a pod.yaml.
func findFixtures(path string) ([]*fixture, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	var found []*fixture
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() == "pod.yaml" {
			directory := filepath.Dir(file)
			name, relErr := filepath.Rel(path, directory)
			if relErr != nil {
				return relErr
			}
			found = append(found, &fixture{name: name, directory: directory})
		}
		return err
	})
	return found, err
}

// load reads the files; cluster serves a fixture without one of its own.
func (f *fixture) load(cluster *catalog.Catalog) error {
	f.cluster, f.namespaces = cluster, map[string]*catalog.Namespace{}
	if files, ok, err := f.manifests("cluster.yaml"); err != nil {
		return err
	} else if ok {
		f.cluster, f.namespaces = files.Catalog(), files.Namespaces()
	}
	var named string
	if files, ok, err := f.manifests("namespace.yaml"); err != nil {
		return err
	} else if ok {
		given := files.Namespaces()
		if len(given) != 1 {
			return fmt.Errorf("namespace.yaml: %d Namespaces: write one", len(given))
		}
		for name, namespace := range given {
			named, f.namespaces[name] = name, namespace
		}
	}
	if err := f.loadPod(named); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(f.directory, "expect.yaml"))
	if err != nil {
		return fmt.Errorf("expect.yaml: %w: say what must come out", errors.Unwrap(err))
	}
	return f.expect.decode(raw)
}

// loadPod puts a pod that names no namespace into the given one.
func (f *fixture) loadPod(namespace string) error {
	files, _, err := f.manifests("pod.yaml")
	if err != nil {
		return err
	}
	if len(files.Documents) != 1 {
		return fmt.Errorf("pod.yaml: %d documents: write one", len(files.Documents))
	}
	f.pod = &files.Documents[0]
	object, ok := f.pod.Object.(metav1.Object)
	if _, makesPods := webhook.Templates[f.pod.GVK.Kind]; !ok || !makesPods {
		return fmt.Errorf("pod.yaml: kind %s makes no pods: write a Pod or a workload", f.pod.GVK.Kind)
	}
	switch own := object.GetNamespace(); {
	case own == "":
		object.SetNamespace(namespace)
	case namespace != "" && own != namespace:
		return fmt.Errorf("pod.yaml: metadata.namespace is %s, and namespace.yaml is %s: leave it out of pod.yaml", own, namespace)
	}
	if len(f.pod.Warnings) > 0 {
		return fmt.Errorf("pod.yaml: %s", strings.Join(f.pod.Warnings, "; "))
	}
	return nil
}

// manifests reads a file of the fixture; ok is false where there is none.
func (f *fixture) manifests(name string) (manifests *catalog.Manifests, ok bool, err error) {
	raw, err := os.ReadFile(filepath.Join(f.directory, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	manifests = &catalog.Manifests{}
	return manifests, true, manifests.Add(name, raw)
}

func (e *expectation) decode(raw []byte) error {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return fmt.Errorf("expect.yaml: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(asJSON, e)
	if err := errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("expect.yaml: %w: the keys are action, trust, runtimeClassName, isolation, reasons and warnings", err)
	}
	return nil
}

// run routes the pod; the error says what is not as expected.
func (f *fixture) run(ctx context.Context, router *webhook.Router, now time.Time) error {
	input, _, err := survey.Read(f.pod, f.namespaces, now)
	if err != nil {
		return err
	}
	f.input = input
	route, err := router.Route(ctx, *input)
	if err != nil {
		return err
	}
	return f.expect.compare(&route)
}

func (e *expectation) compare(route *webhook.Route) error {
	return errors.Join(
		differs("action", e.Action, route.Action),
		differs("trust", e.Trust, route.Trust),
		differs("runtimeClassName", e.RuntimeClassName, route.RuntimeClassName),
		differs("isolation", e.Isolation, route.Isolation),
		missing("reasons", e.Reasons, route.Reasons),
		missing("warnings", e.Warnings, route.Warnings),
	)
}

func differs[T ~string](key string, want *T, got T) error {
	if want == nil || *want == got {
		return nil
	}
	return fmt.Errorf("%s is %q, want %q", key, got, *want)
}

func missing(key string, want, got []string) error {
	var errs []error
	for _, part := range want {
		if !strings.Contains(strings.Join(got, "\n"), part) {
			errs = append(errs, fmt.Errorf("none of the %s has %q: %q", key, part, got))
		}
	}
	return errors.Join(errs...)
}

func (f *fixture) testCase(begin time.Time, err error) testCase {
	c := testCase{
		Kind: "fixture", Name: f.name, File: filepath.Join(f.directory, "expect.yaml"),
		Status: "pass", Seconds: time.Since(begin).Seconds(),
	}
	if err != nil {
		c.Status, c.Message = "fail", cmp.Or(strings.ReplaceAll(err.Error(), "\n", "; "), "failed")
	}
	return c
}
