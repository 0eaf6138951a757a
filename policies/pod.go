package policies

import (
	"bytes"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// elsewhere are fields of the metadata that are kept as maps, and one that is half of an
// object and says nothing about it.
var elsewhere = []string{"labels", "annotations", "managedFields"}

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

// ReadPod splits a Pod. It goes over the bytes once, keeps slices of them, and says no to
// what is no JSON object or has a field twice. The caller must not change raw.
func ReadPod(raw []byte) (*Pod, error) {
	p := &Pod{}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	err := readObject(decoder, func(name string) error {
		part := map[string]*fields{"metadata": &p.metadata, "spec": &p.spec}[name]
		switch {
		case part == nil || decoder.PeekKind() == jsontext.KindNull:
			return p.object.read(decoder, raw, name)
		case *part != nil:
			return fmt.Errorf("field %s is given twice", name)
		}
		*part = fields{}
		if err := readObject(decoder, func(inner string) error {
			if i := list(name, inner); i >= 0 && decoder.PeekKind() != jsontext.KindNull {
				return p.readList(decoder, raw, i)
			}
			return part.read(decoder, raw, inner)
		}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	for name, into := range map[string]*map[string]string{"labels": &p.Labels, "annotations": &p.Annotations} {
		if err := unmarshal(p.metadata.get(name), into); err != nil {
			return nil, fmt.Errorf("pod: metadata.%s: %w", name, err)
		}
	}
	p.metadata = slices.DeleteFunc(p.metadata, func(m member) bool { return slices.Contains(elsewhere, m.name) })
	if err := p.forgetIdentity(); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	return p, nil
}

func (p *Pod) readList(decoder *jsontext.Decoder, raw []byte, list int) error {
	name := splitLists[list].field
	if p.lists[list] != nil {
		return fmt.Errorf("field %s is given twice", name)
	}
	p.lists[list] = []fields{}
	if kind := decoder.PeekKind(); kind != jsontext.KindBeginArray {
		return fmt.Errorf("%s: %s, want a list", name, kind)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for i := 0; decoder.PeekKind() != jsontext.KindEndArray; i++ {
		var item fields
		if err := readObject(decoder, func(inner string) error { return item.read(decoder, raw, inner) }); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		p.lists[list] = append(p.lists[list], item)
	}
	_, err := decoder.ReadToken()
	return err
}

// readObject calls member for each name of an object; it must read the value.
func readObject(decoder *jsontext.Decoder, member func(name string) error) error {
	if kind := decoder.PeekKind(); kind != jsontext.KindBeginObject {
		if _, err := decoder.ReadToken(); err != nil {
			return err
		}
		return fmt.Errorf("%s, want an object", kind)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}

// read appends the member whose value comes next, as a slice of raw.
func (f *fields) read(decoder *jsontext.Decoder, raw []byte, name string) error {
	if f.get(name) != nil {
		return fmt.Errorf("field %s is given twice", name)
	}
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	end := int(decoder.InputOffset())
	*f = append(*f, member{name: name, raw: raw[end-len(value) : end : end]})
	return nil
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
