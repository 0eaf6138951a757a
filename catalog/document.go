package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Document is one object of a manifest file. The items of a List are documents
// of their own.
type Document struct {
	File string
	// Index counts the documents of the file from 1.
	Index int
	GVK   schema.GroupVersionKind
	// Raw is the object as JSON, with every field that the file has.
	Raw json.RawMessage
	// Object is typed for the kinds that the product reads and nil for others.
	Object runtime.Object
	// Warnings name fields that the typed object does not know.
	Warnings []string
}

// DocumentError says which document of which file could not be read, and why.
type DocumentError struct {
	File  string
	Index int
	// Line is where the document starts, from 1.
	Line int
	Err  error
}

// Error implements error.
func (e *DocumentError) Error() string {
	return fmt.Sprintf("%s: document %d (line %d): %v", e.File, e.Index, e.Line, e.Err)
}

// Unwrap returns the fault itself.
func (e *DocumentError) Unwrap() error { return e.Err }

// scheme knows the kinds that decisions are made of and made for.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, nodev1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // the API packages' own registration: a broken build
		}
	}
	return s
}()

// typed decodes and, in one go, says which fields the type does not know.
var typed = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme,
	jsonserializer.SerializerOptions{Strict: true})

func decodeDocuments(file string, raw []byte) (documents []Document, err error) {
	var errs []error
	for i, c := range split(string(raw)) {
		found, err := decodeDocument([]byte(c.text))
		for j := range found {
			found[j].File, found[j].Index = file, i+1
		}
		documents = append(documents, found...)
		if err != nil {
			errs = append(errs, &DocumentError{File: file, Index: i + 1, Line: c.line, Err: err})
		}
	}
	return documents, errors.Join(errs...)
}

func decodeDocument(chunk []byte) ([]Document, error) {
	raw, err := toJSON(chunk)
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" { // an explicit nothing
		return nil, nil
	}
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
	}
	switch {
	case head.APIVersion == "":
		return nil, errors.New("field apiVersion is missing")
	case head.Kind == "":
		return nil, errors.New("field kind is missing")
	case head.Kind == "List":
		return decodeList(head.Items)
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("field apiVersion: %w", err)
	}
	d := Document{GVK: gv.WithKind(head.Kind), Raw: raw}
	if !scheme.Recognizes(d.GVK) {
		return []Document{d}, nil
	}
	d.Object, _, err = typed.Decode(raw, nil, nil)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, err := range strict.Errors() {
			d.Warnings = append(d.Warnings, err.Error())
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return []Document{d}, nil
}

// toJSON reads YAML, in which a key that is there twice is an error. JSON is YAML too; what
// is plain JSON is not taken apart as such, which takes ten times as long.
func toJSON(chunk []byte) ([]byte, error) {
	if text := bytes.TrimSpace(chunk); bytes.HasPrefix(text, []byte("{")) {
		var object map[string]any
		if strict, err := kjson.UnmarshalStrict(text, &object); err == nil && len(strict) == 0 {
			return text, nil
		}
	}
	return yaml.YAMLToJSONStrict(chunk)
}

func decodeList(items []json.RawMessage) (documents []Document, err error) {
	var errs []error
	for i, item := range items {
		found, err := decodeDocument(item)
		documents = append(documents, found...)
		if err != nil {
			errs = append(errs, fmt.Errorf("items[%d]: %w", i, err))
		}
	}
	return documents, errors.Join(errs...)
}
