package survey

import (
	"bytes"
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

// Manifests reads manifests one document at a time, any number of times.
type Manifests struct {
	files []string
	size  int64 // of all files, in bytes
	spool *os.File
}

// Open lists the files, directories of them and "-" for stdin. Standard input is kept in a temporary file, since it is
// read twice.
func Open(paths []string, stdin io.Reader) (*Manifests, error) {
	s := &Manifests{}
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
func (s *Manifests) Close() error {
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

// Documents yields each document, or the error of one that cannot be read; of chunks that
// mention none of the words, if there are any, nothing.
func (s *Manifests) Documents(words ...string) iter.Seq2[*catalog.Document, error] {
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

// Items yields each document and each item of a list; bar is told how many bytes are read.
func (s *Manifests) Items(bar Progress) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		bar.Size(s.size)
		for c, err := range s.chunks(bar.At) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
			} else if !yield(&Item{documents: c.documents}, nil) {
				return
			}
		}
	}
}

// chunks takes the files apart. Chunks without any of the words are passed over: to decode
// them takes longer than all else. at, if it is given, is told how many bytes have been
// read.
func (s *Manifests) chunks(at func(int64), words ...string) iter.Seq2[*chunk, error] {
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
