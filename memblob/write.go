package memblob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

// trusted is how many bytes are allocated at once on the word of a source alone, which may declare
// far more than it has.
const trusted = 1 << 20

// Set implements blob.Blob. The source is read to its end first and published in one step after it, so
// that conditions are decided at one moment and a slow source holds up nobody.
func (s *Store) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	if err := s.gate.Enter(ctx, blob.OpSet, key); err != nil {
		return blob.Info{}, named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckSet(key, src, opts)
	if err != nil {
		return blob.Info{}, named(err)
	}
	if o.SHA256 {
		return blob.Info{}, refuse(blob.OpSet, key, fmt.Errorf("%w: SHA256", blob.ErrUnsupported))
	}
	data, err := s.readSource(ctx, src)
	if err != nil {
		return blob.Info{}, refuse(blob.OpSet, key, err)
	}
	obj := &object{data: data, info: blob.Info{
		Key:         key,
		Size:        int64(len(data)),
		Version:     blob.NewToken(),
		Metadata:    maps.Clone(o.Metadata),
		ContentType: o.ContentType,
	}}
	if err := s.publish(ctx, obj, o.If); err != nil {
		return blob.Info{}, refuse(blob.OpSet, key, err)
	}
	return obj.copyInfo(), nil
}

// publish decides the condition and makes obj visible, in one step.
func (s *Store) publish(ctx context.Context, obj *object, cond blob.Condition) error {
	// The clock is the caller's code: not under the lock. Nobody sees obj yet, so it may still change.
	obj.info.ModTime = s.opts.Now().Round(0) // no monotonic reading: equal times compare equal
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := check(cond, s.mu.objects[obj.info.Key]); err != nil {
		return err
	}
	s.putLocked(obj)
	return nil
}

// check decides cond for a write over current, nil if the key is absent.
func check(cond blob.Condition, current *object) error {
	if cond.Absent() && current != nil {
		return blob.ErrExists
	}
	v, ok := cond.Version()
	switch {
	case !ok:
		return nil
	case current == nil:
		return fmt.Errorf("%w: the key does not exist", blob.ErrPrecondition)
	case current.info.Version != v:
		return fmt.Errorf("%w: the version is %q, not %q", blob.ErrPrecondition, current.info.Version, v)
	}
	return nil
}

// readSource returns the bytes of src in a slice of its own.
func (s *Store) readSource(ctx context.Context, src blob.Source) ([]byte, error) {
	limit := s.opts.MaxObject
	if limit > 0 && src.Size() > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", blob.ErrTooLarge, src.Size(), limit)
	}
	r := src.Reader()
	if r == nil { // another Set took the Stream since it was checked
		return nil, fmt.Errorf("%w: a Stream serves one Set and this one has been used", blob.ErrInvalidOption)
	}
	size, first := src.Size(), min(src.Size(), trusted)
	if _, ok := r.(*bytes.Reader); ok {
		first = size // the bytes exist
	}
	buf := make([]byte, 0, max(first, 0))
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := readMore(r, &buf, size)
		if limit > 0 && int64(len(buf)) > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", blob.ErrTooLarge, limit)
		}
		switch {
		case err == io.EOF: //nolint:errorlint // the end is io.EOF itself; a source that fails with an error around it has failed
			return exact(buf), nil
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrNoProgress // the readers of blob.Source never do this
		}
	}
}

// readMore reads once, behind what buf holds. A full buffer is made larger only after one byte more has come, so
// that an object of known size costs no second allocation.
func readMore(r io.Reader, buf *[]byte, size int64) (int, error) {
	b := *buf
	if len(b) < cap(b) {
		n, err := r.Read(b[len(b):cap(b)])
		*buf = b[:len(b)+n]
		return n, err
	}
	var one [1]byte
	n, err := r.Read(one[:])
	if n > 0 {
		room := max(2*int64(cap(b)), 4096)
		if size > int64(len(b)) {
			room = min(room, size) // the last step is exact
		}
		grown := append(make([]byte, 0, room), b...)
		grown = append(grown, one[0])
		*buf = grown
	}
	return n, err
}

// exact gives up spare room that was reserved for a stream of unknown length.
func exact(buf []byte) []byte {
	if cap(buf)-len(buf) > len(buf)/8 {
		return bytes.Clone(buf)
	}
	return buf
}
