package policies

import (
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is what is seen of a Pod, split into the fields of the object, of its metadata and of
// its spec. These stay JSON until something asks for what is in them: most pods are copies of
// one that has been decided on, and are told to be by their bytes.
//
// What differs between such copies and is nobody's business is not in it; docs/authors.md
// lists it.
type Pod struct {
	object, metadata, spec fields
	// lists are those of [splitLists], split as well; nil where there is none.
	lists [len(splitLists)][]fields
	// Labels and Annotations are complete.
	Labels, Annotations map[string]string
}

// splitLists are lists of objects, by the part of the Pod and the field.
var splitLists = [...]struct{ part, field string }{
	{"metadata", "ownerReferences"},
	{"spec", "initContainers"},
	{"spec", "containers"},
	{"spec", "ephemeralContainers"},
}

// list returns the position of a list, -1 for a field that is none.
func list(part, field string) int {
	return slices.IndexFunc(splitLists[:], func(l struct{ part, field string }) bool { return l.part == part && l.field == field })
}

// hasContainers reports whether a list is one of containers.
func hasContainers(list int) bool { return splitLists[list].part == "spec" }

// member is one of a JSON object.
type member struct {
	name string
	raw  jsontext.Value
}

// fields are the members of an object, in their order. There are few: a search beats a map.
type fields []member

func (f fields) get(name string) jsontext.Value {
	for i := range f {
		if f[i].name == name {
			return f[i].raw
		}
	}
	return nil
}

// set puts a value in the place of one that is there; an empty one takes it away.
func (f fields) set(name string, raw jsontext.Value) {
	if len(raw) == 0 {
		raw = nil
	}
	for i := range f {
		if f[i].name == name {
			f[i].raw = raw[:len(raw):len(raw)]
		}
	}
}

// ReadPod splits a Pod.
func ReadPod(raw []byte) (*Pod, error) {
	p := &Pod{}
	if err := jsonv2.Unmarshal(raw, p, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	return p, nil
}

var _ jsonv2.UnmarshalerFrom = (*Pod)(nil)

// UnmarshalJSONFrom implements json.UnmarshalerFrom of the second version of encoding/json.
// It goes over the object once, copies the fields, and says no to what is no JSON object or
// has one of its own fields, or of its metadata or spec, twice.
func (p *Pod) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	r := &splitter{Decoder: decoder, copied: make([]byte, 0, splitSize)}
	*p = Pod{}
	err := r.members(func(name string) error {
		part := map[string]*fields{"metadata": &p.metadata, "spec": &p.spec}[name]
		switch {
		case part == nil || r.PeekKind() == jsontext.KindNull:
			return r.read(&p.object, name)
		case *part != nil:
			return fmt.Errorf("field %s is given twice", name)
		}
		*part = make(fields, 0, usualFields)
		if err := r.members(func(field string) error {
			switch i := list(name, field); {
			case name == "metadata" && field == "managedFields":
				return r.SkipValue() // half of an object, and says nothing about it
			case i >= 0 && r.PeekKind() != jsontext.KindNull:
				return r.list(&p.lists[i], field)
			}
			return r.read(part, field)
		}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, into := range map[string]*map[string]string{"labels": &p.Labels, "annotations": &p.Annotations} {
		if err := unmarshal(p.metadata.get(name), into); err != nil {
			return fmt.Errorf("metadata.%s: %w", name, err)
		}
	}
	p.metadata = slices.DeleteFunc(p.metadata, func(m member) bool { return m.name == "labels" || m.name == "annotations" })
	return p.forgetIdentity()
}

// Has reports whether the Pod has metadata, spec or another field of the object.
func (p *Pod) Has(name string) bool {
	switch name {
	case "metadata":
		return p.metadata != nil
	case "spec":
		return p.spec != nil
	}
	return given(p.object.get(name))
}

// Decode decodes a field of the object into what into points to, and leaves that alone where
// the Pod lacks the field. Names are told apart by case, as the API server does.
func (p *Pod) Decode(name string, into any) error { return unmarshal(p.object.get(name), into) }

// DecodeMetadata decodes a field of the metadata likewise. Labels and annotations are not
// among them, nor are owners.
func (p *Pod) DecodeMetadata(name string, into any) error {
	return unmarshal(p.metadata.get(name), into)
}

// Controller is the owner that controls the Pod, and made it more often than not; nil where
// there is none. A pod's creator writes it, so it proves nothing.
func (p *Pod) Controller() (*metav1.OwnerReference, error) {
	for _, item := range p.lists[list("metadata", "ownerReferences")] {
		owner := metav1.OwnerReference{}
		for name, into := range map[string]any{
			"apiVersion": &owner.APIVersion, "kind": &owner.Kind, "name": &owner.Name, "uid": &owner.UID, "controller": &owner.Controller,
		} {
			if err := unmarshal(item.get(name), into); err != nil {
				return nil, fmt.Errorf("metadata.ownerReferences.%s: %w", name, err)
			}
		}
		if owner.Controller != nil && *owner.Controller {
			return &owner, nil
		}
	}
	return nil, nil //nolint:nilnil // a pod without a controller is no fault
}

// DecodeSpec decodes a field of the spec likewise.
func (p *Pod) DecodeSpec(name string, into any) error { return unmarshal(p.spec.get(name), into) }

func given(raw jsontext.Value) bool { return raw != nil && raw.Kind() != jsontext.KindNull }

func unmarshal(raw jsontext.Value, into any) error {
	if !given(raw) {
		return nil
	}
	return jsonv2.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true), jsonv2.RejectUnknownMembers(false))
}

// HasContainers reports whether spec.containers has one.
func (p *Pod) HasContainers() bool { return len(p.lists[list("spec", "containers")]) > 0 }
