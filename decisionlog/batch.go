package decisionlog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
)

// maxBatch is from how much JSON on a batch is full. Compressed it is some 30 KB, which is
// what OPA sends at once as shipped (upload_size_limit_bytes).
const maxBatch = 256 << 10

// batch is the events of one upload.
type batch struct {
	entries int
	list    bytes.Buffer // a JSON array that is not closed yet
}

func (b *batch) add(e *event) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	separator := byte('[')
	if b.entries > 0 {
		separator = ','
	}
	b.list.WriteByte(separator)
	b.list.Write(raw)
	b.entries++
	return nil
}

func (b *batch) full() bool { return b.list.Len() >= maxBatch }

// compressed is the body of the upload.
func (b *batch) compressed() ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for _, part := range [][]byte{b.list.Bytes(), []byte("]")} {
		if _, err := w.Write(part); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
