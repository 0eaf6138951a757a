package policies

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// rewriter copies JSON in one pass, and leaves out of lists and objects what its caller does
// not write. A list that is empty is left out as well.
type rewriter struct {
	*jsontext.Decoder
	out []byte
}

func newRewriter(raw jsontext.Value) *rewriter {
	return &rewriter{
		Decoder: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)),
		out:     make([]byte, 0, len(raw)),
	}
}

// append writes a value, or returns the error beside it.
func (w *rewriter) append(value jsontext.Value, err error) error {
	w.out = append(w.out, value...)
	return err
}

// copy writes the next value as it is.
func (w *rewriter) copy() error { return w.append(w.ReadValue()) }

// items calls item for each item of a list, which it must read. What is no list is copied.
func (w *rewriter) items(item func() error) error {
	if w.PeekKind() != jsontext.KindBeginArray {
		return w.copy()
	}
	return w.parts(jsontext.KindEndArray, item)
}

// members does the same to an object; the name has been read.
func (w *rewriter) members(member func(name string) error) error {
	if w.PeekKind() != jsontext.KindBeginObject {
		return w.copy()
	}
	return w.parts(jsontext.KindEndObject, func() error {
		start := len(w.out)
		name, err := readName(w.Decoder)
		if err != nil {
			return err
		}
		if w.out, err = jsontext.AppendQuote(w.out, name); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		written := len(w.out)
		if err := member(name); err != nil {
			return err
		}
		if len(w.out) == written {
			w.out = w.out[:start]
		}
		return nil
	})
}

// parts goes over a list or an object up to its end.
func (w *rewriter) parts(end jsontext.Kind, part func() error) error {
	start, kept := len(w.out), 0
	begin, err := w.ReadToken()
	if err != nil {
		return err
	}
	w.out = append(w.out, byte(begin.Kind()))
	for w.PeekKind() != end {
		before := len(w.out)
		if kept > 0 {
			w.out = append(w.out, ',')
		}
		written := len(w.out)
		if err := part(); err != nil {
			return err
		}
		if len(w.out) == written {
			w.out = w.out[:before]
			continue
		}
		kept++
	}
	if _, err := w.ReadToken(); err != nil {
		return err
	}
	if w.out = append(w.out, byte(end)); kept == 0 && end == jsontext.KindEndArray {
		w.out = w.out[:start]
	}
	return nil
}
