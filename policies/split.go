package policies

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// splitSize is what the fields of most pods fit into, in bytes.
const splitSize = 8 << 10

// usualFields are as many as most objects have.
const usualFields = 16

// splitter copies fields while it reads. What a decoder returns is good until it reads on.
type splitter struct {
	*jsontext.Decoder
	copied []byte
}

// members calls member for each name of an object; it must read the value.
func (s *splitter) members(member func(name string) error) error {
	if kind := s.PeekKind(); kind != jsontext.KindBeginObject {
		return s.unexpected("an object")
	}
	if _, err := s.ReadToken(); err != nil {
		return err
	}
	for s.PeekKind() != jsontext.KindEndObject {
		name, err := readName(s.Decoder)
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := s.ReadToken()
	return err
}

// list reads a list of objects.
func (s *splitter) list(into *[]fields, name string) error {
	if *into != nil {
		return fmt.Errorf("field %s is given twice", name)
	}
	*into = []fields{}
	if s.PeekKind() != jsontext.KindBeginArray {
		return fmt.Errorf("%s: %w", name, s.unexpected("a list"))
	}
	if _, err := s.ReadToken(); err != nil {
		return err
	}
	for i := 0; s.PeekKind() != jsontext.KindEndArray; i++ {
		item := make(fields, 0, usualFields)
		if err := s.members(func(inner string) error { return s.read(&item, inner) }); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		*into = append(*into, item)
	}
	_, err := s.ReadToken()
	return err
}

// read appends the member whose value comes next.
func (s *splitter) read(into *fields, name string) error {
	if into.get(name) != nil {
		return fmt.Errorf("field %s is given twice", name)
	}
	value, err := s.ReadValue()
	if err != nil {
		return err
	}
	start := len(s.copied)
	s.copied = append(s.copied, value...)
	*into = append(*into, member{name: name, raw: s.copied[start:len(s.copied):len(s.copied)]})
	return nil
}

// unexpected says what stands where something else is wanted, or why nothing can be read.
func (s *splitter) unexpected(want string) error {
	kind := s.PeekKind()
	if err := s.SkipValue(); err != nil {
		return err
	}
	return fmt.Errorf("%s, want %s", kind, want)
}
