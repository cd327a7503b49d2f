package blob

import (
	"context"
	"errors"
	"iter"
	"strings"
)

// Prefixed returns a view of inner in which every key lies under prefix: the key "k" of
// the view is prefix+"k" of inner. A missing final slash is added (see CheckPrefix), so views of "team" and
// "team2" never meet. Keys in results and errors are those of the view.
//
// Closing the view closes nothing, and it refuses nothing afterwards: inner
// belongs to whoever made it. A key of the view may have MaxKey bytes less those of the prefix.
func Prefixed(inner Blob, prefix string) (Blob, error) {
	p, err := CheckPrefix(prefix)
	if err != nil {
		return nil, Invalid(OpOpen, prefix, err)
	}
	return &prefixed{inner: inner, prefix: p}, nil
}

type prefixed struct {
	inner  Blob // named, not embedded: a new method of Blob must be decided on here
	prefix string
}

func (p *prefixed) Get(ctx context.Context, key string, opts *GetOptions) (Object, error) {
	if _, err := CheckGet(key, opts); err != nil { // "" + prefix would be a key
		return Object{}, p.refuse(err)
	}
	obj, err := p.inner.Get(ctx, p.prefix+key, opts)
	obj.Info = p.strip(obj.Info)
	return obj, p.stripError(err)
}

func (p *prefixed) GetRanges(ctx context.Context, key string, rs []Range, opts *GetOptions) ([]Object, error) {
	if _, err := CheckGetRanges(key, rs, opts); err != nil {
		return nil, p.refuse(err)
	}
	objs, err := p.inner.GetRanges(ctx, p.prefix+key, rs, opts)
	for i := range objs {
		objs[i].Info = p.strip(objs[i].Info)
	}
	return objs, p.stripError(err)
}

func (p *prefixed) Set(ctx context.Context, key string, src Source, opts *SetOptions) (Info, error) {
	if _, err := CheckSet(key, src, opts); err != nil {
		return Info{}, p.refuse(err)
	}
	info, err := p.inner.Set(ctx, p.prefix+key, src, opts)
	return p.strip(info), p.stripError(err)
}

func (p *prefixed) Stat(ctx context.Context, key string) (Info, error) {
	if err := CheckName(OpStat, key); err != nil {
		return Info{}, p.refuse(err)
	}
	info, err := p.inner.Stat(ctx, p.prefix+key)
	return p.strip(info), p.stripError(err)
}

func (p *prefixed) List(ctx context.Context, prefix string, opts *ListOptions) iter.Seq2[Info, error] {
	o := deref(opts)
	if o.StartAfter != "" {
		o.StartAfter = p.prefix + o.StartAfter
	}
	return func(yield func(Info, error) bool) {
		for info, err := range p.inner.List(ctx, p.prefix+prefix, &o) {
			if err == nil && info.Key == p.prefix {
				continue // someone's object named exactly like the prefix: no key of the view
			}
			if !yield(p.strip(info), p.stripError(err)) {
				return
			}
		}
	}
}

func (p *prefixed) Delete(ctx context.Context, key string, opts *DeleteOptions) error {
	if _, err := CheckDelete(key, opts); err != nil {
		return p.refuse(err)
	}
	return p.stripError(p.inner.Delete(ctx, p.prefix+key, opts))
}

func (p *prefixed) DeleteAll(ctx context.Context, keys []string) error {
	if err := CheckDeleteAll(keys); err != nil {
		return p.refuse(err)
	}
	full := make([]string, len(keys))
	for i, k := range keys {
		full[i] = p.prefix + k
	}
	return p.stripError(p.inner.DeleteAll(ctx, full))
}

func (p *prefixed) Restore(ctx context.Context, key string) (Info, error) {
	if err := CheckName(OpRestore, key); err != nil {
		return Info{}, p.refuse(err)
	}
	info, err := p.inner.Restore(ctx, p.prefix+key)
	return p.strip(info), p.stripError(err)
}

func (p *prefixed) Capabilities() Capabilities { return p.inner.Capabilities() }

func (p *prefixed) Close(context.Context) error { return nil }

func (p *prefixed) strip(info Info) Info {
	info.Key = strings.TrimPrefix(info.Key, p.prefix)
	return info
}

// refuse completes an error of the Check functions, which do not know the store.
func (p *prefixed) refuse(err error) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // made by Invalid
		e.Store = p.inner.Capabilities().Store
	}
	return err
}

// stripError returns err with the view's keys. The errors of a Blob are *Error or *DeleteError themselves,
// not wrapped further, so they are copied; anything else passes as it is.
func (p *prefixed) stripError(err error) error {
	var d *DeleteError
	if errors.As(err, &d) {
		failed := make([]KeyError, len(d.Failed))
		for i, f := range d.Failed {
			failed[i] = KeyError{Key: strings.TrimPrefix(f.Key, p.prefix), Err: p.stripError(f.Err)}
		}
		return &DeleteError{Failed: failed}
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // only the outermost may be replaced
		c := *e
		c.Key = strings.TrimPrefix(c.Key, p.prefix)
		return &c
	}
	return err
}
