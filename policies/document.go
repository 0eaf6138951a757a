package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// value builds the input document, of the parts that are read.
func (in *Input) value(c *catalog.Catalog, r *reads) (ast.Value, error) {
	input := ast.NewObject()
	if of := r.of("pod"); of != nil {
		pod, err := in.Pod.value(newReader(), of)
		if err != nil {
			return nil, fmt.Errorf("pod: %w", err)
		}
		input.Insert(ast.InternedTerm("pod"), pod)
	}
	if r.of("node") != nil {
		node, err := nodeOf(c, in.Pod)
		if err != nil {
			return nil, err
		}
		if err := insert(input, "node", node.fields()); err != nil {
			return nil, err
		}
	}
	if of := r.of("request"); of != nil {
		request := ast.NewObject()
		for name, value := range in.Request.fields() {
			if of.of(name) == nil {
				continue
			}
			if err := insert(request, name, value); err != nil {
				return nil, fmt.Errorf("request: %w", err)
			}
		}
		input.Insert(ast.InternedTerm("request"), ast.NewTerm(request))
	}
	if of := r.of("namespace"); of != nil {
		input.Insert(ast.InternedTerm("namespace"), ast.ObjectTerm(
			ast.Item(ast.InternedTerm("name"), ast.StringTerm(in.Namespace.Name)),
			ast.Item(ast.InternedTerm("labels"), stringMap(in.Namespace.Labels, of.of("labels"))),
			ast.Item(ast.InternedTerm("annotations"), stringMap(in.Namespace.Annotations, of.of("annotations"))),
		))
	}
	return input, nil
}

func insert(object ast.Object, name string, value any) error {
	v, err := ast.InterfaceToValue(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	object.Insert(ast.InternedTerm(name), ast.NewTerm(v))
	return nil
}

// fields are the members of input.request.
func (r *Request) fields() map[string]any {
	return map[string]any{
		"operation": r.Operation, "subResource": r.SubResource, "namespace": r.Namespace, "name": r.Name,
		"userInfo": r.UserInfo, "dryRun": r.DryRun, "date": r.Date,
	}
}

func (p *Pod) value(read *reader, r *reads) (*ast.Term, error) {
	object, err := p.object.value(read, r)
	if err != nil {
		return nil, err
	}
	for name, part := range map[string]fields{"metadata": p.metadata, "spec": p.spec} {
		of := r.of(name)
		if of == nil || part == nil {
			continue
		}
		inner, err := part.value(read, of)
		if err != nil {
			return nil, err
		}
		if err := inner.insertLists(read, name, p.lists, of); err != nil {
			return nil, err
		}
		if name == "metadata" {
			inner.insertMap("labels", p.Labels, of, ownLabels)
			inner.insertMap("annotations", p.Annotations, of, ownAnnotations)
		}
		object.Insert(ast.InternedTerm(name), ast.NewTerm(inner.Object))
	}
	return ast.NewTerm(object.Object), nil
}

// partial is an object that is being built.
type partial struct{ ast.Object }

func (o partial) insertMap(name string, m map[string]string, r *reads, without []string) {
	if of := r.of(name); of != nil && m != nil {
		o.Insert(ast.InternedTerm(name), stringMap(shared(m, without), of))
	}
}

func (f fields) value(read *reader, r *reads) (partial, error) {
	members := make([][2]*ast.Term, 0, len(f))
	for _, member := range f {
		if r.of(member.name) == nil || member.raw == nil {
			continue
		}
		term, err := read.term(member.raw)
		if err != nil {
			return partial{}, fmt.Errorf("%s: %w", member.name, err)
		}
		members = append(members, ast.Item(ast.InternedTerm(member.name), term))
	}
	return partial{ast.NewObject(members...)}, nil // none is given twice, or there were no pod
}

// insertLists inserts those of one part.
func (o partial) insertLists(read *reader, part string, lists [len(splitLists)][]fields, r *reads) error {
	for i, list := range splitLists {
		each := r.of(list.field).items()
		if list.part != part || each == nil || lists[i] == nil {
			continue
		}
		items := make([]*ast.Term, 0, len(lists[i]))
		for _, item := range lists[i] {
			object, err := item.value(read, each)
			if err != nil {
				return fmt.Errorf("%s: %w", list.field, err)
			}
			items = append(items, ast.NewTerm(object.Object))
		}
		o.Insert(ast.InternedTerm(list.field), ast.ArrayTerm(items...))
	}
	return nil
}

// shared is a map without what is a copy's own.
func shared(m map[string]string, own []string) map[string]string {
	if !slices.ContainsFunc(own, func(key string) bool { _, ok := m[key]; return ok }) {
		return m
	}
	rest := make(map[string]string, len(m))
	for key, value := range m {
		if !slices.Contains(own, key) {
			rest[key] = value
		}
	}
	return rest
}

func stringMap(m map[string]string, r *reads) *ast.Term {
	object := ast.NewObject()
	for key, value := range m {
		if r.of(key) != nil {
			object.Insert(ast.StringTerm(key), ast.StringTerm(value))
		}
	}
	return ast.NewTerm(object)
}

// reader reads JSON values, one after the other.
type reader struct {
	buffer  bytes.Buffer
	decoder *jsontext.Decoder
}

func newReader() *reader {
	r := &reader{}
	r.decoder = jsontext.NewDecoder(&r.buffer)
	return r
}

// term reads one value.
func (r *reader) term(raw jsontext.Value) (*ast.Term, error) {
	r.buffer = *bytes.NewBuffer(raw)
	r.decoder.Reset(&r.buffer, jsontext.AllowDuplicateNames(true))
	return readTerm(r.decoder)
}

func readTerm(decoder *jsontext.Decoder) (*ast.Term, error) {
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		var members [][2]*ast.Term
		for decoder.PeekKind() != jsontext.KindEndObject {
			name, err := readName(decoder)
			if err != nil {
				return nil, err
			}
			value, err := readTerm(decoder)
			if err != nil {
				return nil, err
			}
			members = append(members, ast.Item(ast.InternedTerm(name), value))
		}
		_, err := decoder.ReadToken()
		return ast.NewTerm(objectOf(members)), err
	case jsontext.KindBeginArray:
		var items []*ast.Term
		for decoder.PeekKind() != jsontext.KindEndArray {
			item, err := readTerm(decoder)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := decoder.ReadToken()
		return ast.ArrayTerm(items...), err
	case jsontext.KindString:
		return ast.InternedTerm(token.String()), nil
	case jsontext.KindNumber:
		return ast.NumberTerm(json.Number(token.String())), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return ast.InternedTerm(token.Bool()), nil
	default:
		return ast.NullTerm(), nil
	}
}

// objectOf is an object of members. Of a name that is given twice the last one counts.
func objectOf(members [][2]*ast.Term) ast.Object {
	const few = 16 // to compare each with each
	if len(members) <= few && !twice(members) {
		return ast.NewObject(members...)
	}
	object := ast.NewObjectWithCapacity(len(members))
	for _, member := range members {
		object.Insert(member[0], member[1])
	}
	return object
}

func twice(members [][2]*ast.Term) bool {
	for i, member := range members {
		if slices.ContainsFunc(members[:i], func(other [2]*ast.Term) bool { return other[0].Equal(member[0]) }) {
			return true
		}
	}
	return false
}
