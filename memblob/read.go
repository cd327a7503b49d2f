package memblob

import (
	"context"
	"fmt"
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

// Get implements blob.Blob. Data is a copy.
func (s *Store) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if err := s.gate.Enter(ctx, blob.OpGet, key); err != nil {
		return blob.Object{}, named(err)
	}
	defer s.gate.Leave()
	o, err := blob.CheckGet(key, opts)
	if err != nil {
		return blob.Object{}, named(err)
	}
	objects, err := s.read(key, []blob.Range{o.Range}, o)
	if err != nil {
		return blob.Object{}, refuse(blob.OpGet, key, err)
	}
	return objects[0], nil
}

// GetRanges implements blob.Blob.
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
	objects, err := s.read(key, rs, o)
	if err != nil {
		return nil, refuse(blob.OpGetRanges, key, err)
	}
	return objects, nil
}

// read copies the ranges of one version. Everything that can be refused is, before any allocation.
func (s *Store) read(key string, rs []blob.Range, opts blob.GetOptions) ([]blob.Object, error) {
	obj := s.lookup(key)
	if obj == nil {
		return nil, blob.ErrNotFound
	}
	if v, ok := opts.If.Version(); ok && v != obj.info.Version {
		return nil, fmt.Errorf("%w: the version is %q, not %q", blob.ErrPrecondition, obj.info.Version, v)
	}
	if err := opts.Want.VerifySize(obj.info.Size); err != nil {
		return nil, err
	}
	left := s.opts.MaxGet
	for _, r := range rs {
		_, n, err := r.Resolve(obj.info.Size)
		if err != nil {
			return nil, err
		}
		if n > left {
			return nil, fmt.Errorf("%w: more than MaxGet, %d bytes", blob.ErrTooLarge, s.opts.MaxGet)
		}
		left -= n
	}
	objects := make([]blob.Object, len(rs))
	for i, r := range rs {
		off, n, _ := r.Resolve(obj.info.Size)
		dst := opts.Dst
		if int64(len(dst)) < n {
			dst = make([]byte, n)
		}
		dst = dst[:n:n]
		copy(dst, obj.data[off:off+n])
		if err := opts.Want.Verify(obj.info.Size, off, dst); err != nil {
			return nil, err
		}
		objects[i] = blob.Object{Info: obj.copyInfo(), Offset: off, Data: dst}
	}
	return objects, nil
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
	obj := s.lookup(key)
	if obj == nil {
		return blob.Info{}, refuse(blob.OpStat, key, blob.ErrNotFound)
	}
	return obj.copyInfo(), nil
}

// copyInfo returns the info with metadata of its own: a caller that changes it changes nothing here.
func (o *object) copyInfo() blob.Info {
	info := o.info
	info.Metadata = maps.Clone(info.Metadata)
	return info
}
