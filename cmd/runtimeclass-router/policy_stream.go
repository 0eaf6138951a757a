package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// stream reads manifests one document at a time, any number of times.
type stream struct {
	files []string
	size  int64 // of all files, in bytes
	spool *os.File
}

// openStream lists the files. Standard input is kept in a temporary file, since it is
// read twice.
func openStream(paths []string, stdin io.Reader) (*stream, error) {
	s := &stream{}
	for _, path := range paths {
		if path == catalog.Stdin {
			if s.spool != nil {
				return nil, errors.Join(errors.New("-f - is given twice: standard input can be read once"), s.Close())
			}
			spool, err := os.CreateTemp("", "manifests-*")
			if err != nil {
				return nil, fmt.Errorf("keep standard input: %w", err)
			}
			s.spool = spool
			n, err := io.Copy(spool, stdin)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("read standard input: %w", err), s.Close())
			}
			s.files, s.size = append(s.files, path), s.size+n
			continue
		}
		before := len(s.files)
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))) {
				return nil
			}
			info, err := os.Stat(file)
			if err == nil {
				s.files, s.size = append(s.files, file), s.size+info.Size()
			}
			return err
		})
		if err == nil && len(s.files) == before {
			err = fmt.Errorf("%s holds no .yaml, .yml or .json file", path)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read manifests: %w", err), s.Close())
		}
	}
	return s, nil
}

// Close removes what was kept of standard input.
func (s *stream) Close() error {
	if s.spool == nil {
		return nil
	}
	return errors.Join(s.spool.Close(), os.Remove(s.spool.Name()))
}

// chunk is the text of one document of a file, or of one item of its list.
type chunk struct {
	file        string
	index, line int
	text        []byte
}

// documents yields each document, or the error of one that cannot be read; of chunks that
// mention none of the words, if there are any, nothing.
func (s *stream) documents(words ...string) iter.Seq2[*catalog.Document, error] {
	return func(yield func(*catalog.Document, error) bool) {
		for c, err := range s.chunks(nil, words...) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for document, err := range c.documents {
				if !yield(document, err) {
					return
				}
			}
		}
	}
}

// items yields each chunk; bar is told how far reading is.
func (s *stream) items(bar *progress) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		bar.size = s.size
		for c, err := range s.chunks(bar.at) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
			} else if !yield(&item{documents: c.documents}, nil) {
				return
			}
		}
	}
}

// chunks takes the files apart. Chunks without any of the words are passed over: to decode
// them takes longer than all else. at, if it is given, is told how many bytes have been
// read.
func (s *stream) chunks(at func(int64), words ...string) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		var read int64
		for _, file := range s.files {
			opened := s.spool
			var err error
			if file == catalog.Stdin {
				_, err = opened.Seek(0, io.SeekStart)
			} else {
				opened, err = os.Open(file)
			}
			if err != nil {
				if !yield(nil, fmt.Errorf("read manifests: %w", err)) {
					return
				}
				continue
			}
			more := readChunks(&meter{opened, &read, at}, func(index, line int, text []byte) bool {
				return !mentions(text, words) || yield(&chunk{file, index, line, bytes.Clone(text)}, nil)
			}, func(err error) bool { return yield(nil, fmt.Errorf("%s: %w", file, err)) })
			if file != catalog.Stdin {
				opened.Close()
			}
			if !more {
				return
			}
		}
	}
}

func mentions(chunk []byte, words []string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(chunk, []byte(word)) })
}

// documents decodes the chunk, which may be a list of several. Where in the file they
// stand is said as catalog.ReadManifests does.
func (c *chunk) documents(yield func(*catalog.Document, error) bool) {
	m := &catalog.Manifests{}
	err := m.Add(c.file, c.text)
	for i := range m.Documents {
		m.Documents[i].Index = c.index
		if !yield(&m.Documents[i], nil) {
			return
		}
	}
	var fault *catalog.DocumentError
	if errors.As(err, &fault) {
		fault.Index, fault.Line = c.index, fault.Line+c.line-1
	}
	if err != nil {
		yield(nil, err)
	}
}

// meter tells how much has been read.
type meter struct {
	io.Reader
	read *int64
	at   func(int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	*m.read += int64(n)
	if m.at != nil {
		m.at(*m.read)
	}
	return n, err
}

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
