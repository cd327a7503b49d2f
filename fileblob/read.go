package fileblob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wholeblob/wholeblob/blob"
)

// object is an open file of the store. It is one version, whatever happens to the name.
type object struct {
	header
	file file
	head []byte // the first bytes of the file, as many as were read for the header
	pool *[maxHeader]byte
}

// openObject opens the object called name. The error is isAbsent if there is none.
func (s *Store) openObject(d directory, name string) (*object, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	o := &object{file: f, pool: s.headers.Get().(*[maxHeader]byte)}
	if err := o.readHeader(); err != nil {
		s.closeObject(o)
		return nil, err
	}
	return o, nil
}

func (o *object) readHeader() error {
	n, err := o.file.ReadAt(o.pool[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	o.head = o.pool[:n]
	h, err := parseHeader(o.head)
	if err != nil {
		return err
	}
	o.header = *h
	return nil
}

// closeObject gives back what openObject took. The file was only read: an error of close means nothing.
func (s *Store) closeObject(o *object) {
	_ = o.file.Close()
	s.headers.Put(o.pool)
}

// find opens the object of key. A key that has no object, or whose place is taken by something that fileblob did not write, is ErrNotFound.
func (s *Store) find(key string) (*object, error) {
	at := locate(key)
	c, err := s.walk(at.dirs)
	defer c.close()
	var o *object
	if err == nil {
		o, err = s.openKey(c.last(), at.name, key)
	}
	if isAbsent(err) {
		return nil, blob.ErrNotFound
	}
	return o, err
}

// openKey is openObject for the object of one key. A file of ours that says it is another key's is
// someone's copy, no key.
func (s *Store) openKey(d directory, name, key string) (*object, error) {
	o, err := s.openObject(d, name)
	if err != nil {
		return nil, err
	}
	if o.key != key {
		s.closeObject(o)
		return nil, errForeign
	}
	return o, nil
}

// checkLength compares the file with what its header says.
func (o *object) checkLength() error {
	info, err := o.file.Stat()
	if err != nil {
		return err
	}
	switch got := info.Size() - o.length; {
	case got < o.size:
		return fmt.Errorf("%w: the file has %d of %d bytes", blob.ErrTruncated, max(got, 0), o.size)
	case got > o.size:
		return fmt.Errorf("%w: the file has %d bytes more than its %d", blob.ErrCorrupt, got-o.size, o.size)
	}
	return nil
}

// readAt fills p from offset off of the payload.
func (o *object) readAt(p []byte, off int64) error {
	off += o.length
	if off < int64(len(o.head)) { // a small object came with its header
		n := copy(p, o.head[off:])
		p, off = p[n:], off+int64(n)
	}
	if len(p) == 0 {
		return nil
	}
	n, err := o.file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) { // the file was cut after its length was checked
		return fmt.Errorf("%w: the file ends at %d, %d bytes short", blob.ErrTruncated, off+int64(n), len(p)-n)
	}
	return err
}

// Get implements blob.Blob.
func (s *Store) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if err := s.gate.Enter(ctx, blob.OpGet, key); err != nil {
		return blob.Object{}, named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckGet(key, opts)
	if err != nil {
		return blob.Object{}, named(err)
	}
	objects, err := s.read(ctx, key, []blob.Range{o.Range}, o)
	if err != nil {
		return blob.Object{}, fail(blob.OpGet, key, blob.NotApplied, err)
	}
	return objects[0], nil
}

// GetRanges implements blob.Blob. All ranges are read from one open file.
func (s *Store) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	if err := s.gate.Enter(ctx, blob.OpGetRanges, key); err != nil {
		return nil, named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckGetRanges(key, rs, opts)
	if err != nil {
		return nil, named(err)
	}
	if len(rs) == 0 {
		return nil, nil
	}
	objects, err := s.read(ctx, key, rs, o)
	if err != nil {
		return nil, fail(blob.OpGetRanges, key, blob.NotApplied, err)
	}
	return objects, nil
}

func (s *Store) read(ctx context.Context, key string, rs []blob.Range, opts blob.GetOptions) ([]blob.Object, error) {
	obj, err := s.find(key)
	if err != nil {
		return nil, err
	}
	defer s.closeObject(obj)
	if err := s.admit(obj, rs, opts); err != nil {
		return nil, err
	}
	objects := make([]blob.Object, len(rs))
	for i, r := range rs {
		off, n, _ := r.Resolve(obj.size) // admit has seen it succeed
		dst := opts.Dst
		if int64(len(dst)) < n {
			dst = make([]byte, n)
		}
		dst = dst[:n:n]
		if err := obj.readSteps(ctx, dst, off); err != nil {
			return nil, err
		}
		if err := opts.Want.Verify(obj.size, off, dst); err != nil {
			return nil, err
		}
		objects[i] = blob.Object{Info: obj.info(), Offset: off, Data: dst}
	}
	return objects, nil
}

// admit refuses, before any allocation, what cannot be answered.
func (s *Store) admit(obj *object, rs []blob.Range, opts blob.GetOptions) error {
	if v, ok := opts.If.Version(); ok && v != obj.version {
		return preconditionOf(obj.version, v)
	}
	if err := opts.Want.VerifySize(obj.size); err != nil {
		return err
	}
	left := s.opts.MaxGet
	for _, r := range rs {
		_, n, err := r.Resolve(obj.size)
		if err != nil {
			return err
		}
		if n > left {
			return fmt.Errorf("%w: more than MaxGet, %d bytes", blob.ErrTooLarge, s.opts.MaxGet)
		}
		left -= n
	}
	return obj.checkLength()
}

// step is how many bytes are read or written between two looks at the context.
const step = 4 << 20

func (o *object) readSteps(ctx context.Context, p []byte, off int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(p), step)
		if err := o.readAt(p[:n], off); err != nil {
			return err
		}
		if p, off = p[n:], off+int64(n); len(p) == 0 {
			return nil
		}
	}
}

// Stat implements blob.Blob.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := s.gate.Enter(ctx, blob.OpStat, key); err != nil {
		return blob.Info{}, named(err)
	}
	defer s.gate.Leave()
	if err := blob.CheckName(blob.OpStat, key); err != nil {
		return blob.Info{}, named(err)
	}
	obj, err := s.find(key)
	if err != nil {
		return blob.Info{}, fail(blob.OpStat, key, blob.NotApplied, err)
	}
	defer s.closeObject(obj)
	if err := obj.checkLength(); err != nil {
		return blob.Info{}, fail(blob.OpStat, key, blob.NotApplied, err)
	}
	return obj.info(), nil
}
