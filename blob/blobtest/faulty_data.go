package blobtest

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/wholeblob/wholeblob/blob"
)

// Get implements blob.Blob.
func (f *Faulty) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	f.count(blob.OpGet)
	v := f.decide(ctx, blob.OpGet, key, true)
	if err := f.before(ctx, v); err != nil {
		return blob.Object{}, err
	}
	o, err := f.inner.Get(ctx, key, opts)
	if err = f.lost(v, err); err != nil {
		return blob.Object{}, err
	}
	own := opts != nil && len(opts.Dst) > 0 && len(o.Data) > 0 && &o.Data[0] == &opts.Dst[0]
	v.spoil(&o, own)
	return o, nil
}

// GetRanges implements blob.Blob. A fault of the data hits the last range.
func (f *Faulty) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	f.count(blob.OpGetRanges)
	v := f.decide(ctx, blob.OpGetRanges, key, len(rs) > 0)
	if err := f.before(ctx, v); err != nil {
		return nil, err
	}
	os, err := f.inner.GetRanges(ctx, key, rs, opts)
	if err = f.lost(v, err); err != nil {
		return nil, err
	}
	if len(os) > 0 {
		v.spoil(&os[len(os)-1], false)
	}
	return os, nil
}

// spoil truncates or corrupts what was read. Data may be shared with a cache or the store itself, so it
// is changed in place only where it is the caller's own.
func (v verdict) spoil(o *blob.Object, own bool) {
	switch {
	case v.does(Truncate):
		o.Data = o.Data[:v.fault.keep(int64(len(o.Data)))]
	case v.does(Corrupt):
		o.Data = v.flip(o.Data, own)
	}
}

// flip returns data with one bit changed.
func (v verdict) flip(data []byte, inPlace bool) []byte {
	if len(data) == 0 {
		return data
	}
	if !inPlace {
		data = append([]byte(nil), data...)
	}
	rnd := random(v.seed, -1, v.op, v.key, v.call)
	data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
	return data
}

// Set implements blob.Blob. Truncate and Corrupt read the whole source into memory.
func (f *Faulty) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	f.count(blob.OpSet)
	_, invalid := blob.CheckSet(key, src, opts)
	sound := invalid == nil && src.Size() != 0
	v := f.decide(ctx, blob.OpSet, key, sound)
	if err := f.before(ctx, v); err != nil {
		return blob.Info{}, err
	}
	size := src.Size()
	if v.does(Truncate) || v.does(Corrupt) {
		data, err := io.ReadAll(src.Reader())
		if err != nil {
			return blob.Info{}, f.sourceFailed(key, err)
		}
		size = int64(len(data))
		if v.does(Truncate) {
			data = data[:v.fault.keep(size)]
		} else {
			data = v.flip(data, true)
		}
		src = blob.Bytes(data)
	}
	info, err := f.inner.Set(ctx, key, src, opts)
	if err = f.lost(v, err); err != nil {
		return blob.Info{}, err
	}
	if v.does(Truncate) {
		info.Size = size // a broken store believes that it has all
	}
	return info, nil
}

func (f *Faulty) sourceFailed(key string, err error) error {
	e := &blob.Error{Op: blob.OpSet, Store: f.store(), Key: key, Outcome: blob.NotApplied, Err: err}
	if errors.Is(err, blob.ErrSourceLength) {
		e.Kind = blob.ErrSourceLength
	}
	return e
}

// List implements blob.Blob. Each range over the sequence is a call.
func (f *Faulty) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		f.count(blob.OpList)
		v := f.decide(ctx, blob.OpList, prefix, true)
		if err := f.before(ctx, v); err != nil {
			yield(blob.Info{}, err)
			return
		}
		if v.fault == nil {
			f.inner.List(ctx, prefix, opts)(yield)
			return
		}
		f.listPart(ctx, v, opts, yield)
	}
}

// listPart yields what the fault lets through. The length of the listing is not known ahead, so each element
// waits for the next.
func (f *Faulty) listPart(ctx context.Context, v verdict, opts *blob.ListOptions, yield func(blob.Info, error) bool) {
	var held *blob.Info
	n := int64(0)
	for info, err := range f.inner.List(ctx, v.key, opts) {
		if err != nil {
			if held != nil && !yield(*held, nil) {
				return
			}
			yield(blob.Info{}, err)
			return
		}
		if v.fault.Keep < 0 || v.fault.Keep > 0 && n == v.fault.Keep {
			break
		}
		if held != nil {
			if !yield(*held, nil) {
				return
			}
		}
		held = &info
		n++
	}
	if held != nil && v.fault.Keep > 0 && !yield(*held, nil) {
		return
	}
	if err := f.lost(v, nil); err != nil {
		yield(blob.Info{}, err)
	}
}
