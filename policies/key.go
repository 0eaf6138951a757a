package policies

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// key is a digest of what of an input is read: inputs with the same one look the same to
// the policy. The digest is a cryptographic one, since pods are written by whoever would
// like to be taken for another.
type key [sha256.Size]byte

// digest is written to so that no two inputs write the same: everything has its length
// before it, or is of a fixed length.
type digest []byte

var digests = sync.Pool{New: func() any { return new(digest) }}

// keyOf returns the key of an input.
func (in *Input) keyOf(c *catalog.Catalog, r *reads) (key, error) {
	d := digests.Get().(*digest)
	defer digests.Put(d)
	*d = (*d)[:0]
	if of := r.of("pod"); of != nil {
		d.pod(in.Pod, of)
	}
	if r.of("node") != nil {
		node, err := nodeOf(c, in.Pod)
		if err != nil {
			return key{}, err
		}
		d.node(&node)
	}
	if of := r.of("namespace"); of != nil {
		d.string(in.Namespace.Name)
		d.stringMap(in.Namespace.Labels, of.of("labels"))
		d.stringMap(in.Namespace.Annotations, of.of("annotations"))
	}
	if of := r.of("request"); of != nil {
		if err := d.request(&in.Request, of); err != nil {
			return key{}, err
		}
	}
	return sha256.Sum256(*d), nil
}

func (d *digest) pod(p *Pod, r *reads) {
	d.fields(p.object, r)
	d.bool(p.metadata != nil)
	if of := r.of("metadata"); of != nil {
		d.fields(p.metadata, of)
		d.sharedMap(p.Labels, ownLabels, of.of("labels"))
		d.sharedMap(p.Annotations, ownAnnotations, of.of("annotations"))
	}
	d.bool(p.spec != nil)
	if of := r.of("spec"); of != nil {
		d.fields(p.spec, of)
	}
	for i, list := range splitLists {
		if each := r.of(list.part).of(list.field).items(); each != nil {
			d.items(p.lists[i], each)
		}
	}
}

func (d *digest) items(list []fields, r *reads) {
	d.bool(list != nil)
	*d = binary.AppendUvarint(*d, uint64(len(list)))
	for _, item := range list {
		d.fields(item, r)
	}
}

// fields writes the members that are read, as the bytes that they were sent as.
func (d *digest) fields(f fields, r *reads) {
	for _, member := range f {
		if r.of(member.name) == nil || member.raw == nil {
			continue
		}
		d.string(member.name)
		*d = binary.AppendUvarint(*d, uint64(len(member.raw)))
		*d = append(*d, member.raw...)
	}
	d.end()
}

func (d *digest) node(n *Node) {
	d.list(n.RuntimeClasses)
	d.list(n.Fits)
	d.bool(n.Reports)
	d.bool(n.Selects)
}

func (d *digest) request(request *Request, r *reads) error {
	for _, part := range []struct{ name, value string }{
		{"operation", request.Operation}, {"subResource", request.SubResource}, {"namespace", request.Namespace},
		{"name", request.Name}, {"date", request.Date},
	} {
		if r.of(part.name) != nil {
			d.string(part.value)
		}
	}
	if r.of("dryRun") != nil {
		d.bool(request.DryRun)
	}
	if r.of("userInfo") != nil {
		raw, err := json.Marshal(request.UserInfo)
		if err != nil {
			return fmt.Errorf("request.userInfo: %w", err)
		}
		d.string(string(raw))
	}
	return nil
}

// sharedMap writes a map that the pod may lack.
func (d *digest) sharedMap(m map[string]string, own []string, r *reads) {
	d.bool(m != nil)
	d.stringMap(shared(m, own), r)
}

// stringMap writes the entries that are read, in the order of their keys.
func (d *digest) stringMap(m map[string]string, r *reads) {
	if r != nil && len(m) > 0 {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if r.of(k) != nil {
				d.string(k)
				d.string(m[k])
			}
		}
	}
	d.end()
}

func (d *digest) list(items []string) {
	*d = binary.AppendUvarint(*d, uint64(len(items)))
	for _, item := range items {
		d.string(item)
	}
}

// string writes one more than the length, so that 0 is left for end.
func (d *digest) string(s string) {
	*d = binary.AppendUvarint(*d, uint64(len(s))+1)
	*d = append(*d, s...)
}

func (d *digest) bool(b bool) {
	if b {
		*d = append(*d, 1)
	} else {
		*d = append(*d, 0)
	}
}

// end closes a sequence of which nobody knows the length beforehand.
func (d *digest) end() { *d = append(*d, 0) }
