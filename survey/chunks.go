package survey

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readChunks takes a file apart: YAML at its separators, the items of a JSON list one by
// one. It returns false as soon as a callback does.
func readChunks(r io.Reader, yield func(index, line int, chunk []byte) bool, fail func(error) bool) bool {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if head, _ := buffered.Peek(64); bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		return readJSON(buffered, yield, fail)
	}
	var chunk bytes.Buffer
	index, line, start := 0, 0, 1
	flush := func() bool {
		defer chunk.Reset()
		if blankYAML(chunk.Bytes()) {
			return true
		}
		index++
		return yield(index, start, chunk.Bytes())
	}
	for {
		text, err := buffered.ReadBytes('\n')
		line++
		rest, separates := bytes.CutPrefix(text, []byte("---"))
		if separates && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			if !flush() {
				return false
			}
			start = line + 1
			if len(bytes.TrimSpace(rest)) > 0 { // YAML lets a document begin here
				start = line
				chunk.Write(bytes.TrimLeft(rest, " \t"))
			}
		} else {
			chunk.Write(text)
		}
		if errors.Is(err, io.EOF) {
			return flush()
		}
		if err != nil {
			return fail(err)
		}
	}
}

// readJSON yields a stream of JSON objects, and of one with items each item.
func readJSON(r io.Reader, yield func(index, line int, chunk []byte) bool, fail func(error) bool) bool {
	decoder := json.NewDecoder(r)
	for index := 1; ; index++ {
		fields := map[string]json.RawMessage{}
		more, err := readObject(decoder, fields, func(item []byte) bool { return yield(index, 1, item) })
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return fail(err)
		case !more:
			return false
		case fields["items"] != nil: // its items have been yielded
			continue
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			return fail(err)
		}
		if !yield(index, 1, raw) {
			return false
		}
	}
}

// readObject reads one object into fields, but for the items of a list, which are handed
// over one at a time: a list of a whole cluster's pods does not fit everywhere.
func readObject(decoder *json.Decoder, fields map[string]json.RawMessage, item func([]byte) bool) (more bool, err error) {
	if err := expectToken(decoder, json.Delim('{')); err != nil {
		return false, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return false, noEOF(err)
		}
		if key != "items" {
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return false, noEOF(err)
			}
			fields[fmt.Sprint(key)] = value
			continue
		}
		fields["items"] = json.RawMessage("[]")
		if err := expectToken(decoder, json.Delim('[')); err != nil {
			return false, noEOF(err)
		}
		for decoder.More() {
			var one json.RawMessage
			if err := decoder.Decode(&one); err != nil {
				return false, noEOF(err)
			}
			if !item(one) {
				return false, nil
			}
		}
		if err := expectToken(decoder, json.Delim(']')); err != nil {
			return false, noEOF(err)
		}
	}
	return true, noEOF(expectToken(decoder, json.Delim('}')))
}

func expectToken(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != want {
		err = fmt.Errorf("found %v, want %v", token, want)
	}
	return err
}

// noEOF is for the inside of an object, where the end of the file is a fault.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// blankYAML reports whether nothing but blanks and comments is there.
func blankYAML(chunk []byte) bool {
	for line := range bytes.Lines(chunk) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
