package retry

import (
	"context"
	"iter"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// fake is a store in memory whose calls can fail: before and after are asked about each call, by the name
// of its operation and its number from 1, whether it fails without or after taking effect.
type fake struct {
	mem           *memblob.Store
	before, after func(op string, n int) error
	deleteAll     func(ctx context.Context, n int, keys []string) error // instead of mem's
	list          func(n int, seq iter.Seq2[blob.Info, error]) iter.Seq2[blob.Info, error]
	self          bool // Capabilities.SelfRetrying

	n    int // calls but Close and Capabilities
	ctx  context.Context
	seen []string // the keys of each List's StartAfter
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{mem: memblob.New(&memblob.Options{Restore: true})}
	t.Cleanup(func() {
		if err := f.mem.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// failing returns a function that fails the first n calls.
func failing(n int, err error) func(string, int) error {
	return func(_ string, call int) error {
		if call <= n {
			return err
		}
		return nil
	}
}

func (f *fake) call(ctx context.Context, op string, do func() error) error {
	f.n++
	n := f.n
	f.ctx = ctx
	if f.before != nil {
		if err := f.before(op, n); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if f.after != nil {
		return f.after(op, n)
	}
	return nil
}

func (f *fake) Get(ctx context.Context, key string, opts *blob.GetOptions) (obj blob.Object, err error) {
	err = f.call(ctx, blob.OpGet, func() (err error) { obj, err = f.mem.Get(ctx, key, opts); return err })
	return obj, err
}

func (f *fake) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) (objs []blob.Object, err error) {
	err = f.call(ctx, blob.OpGetRanges, func() (err error) { objs, err = f.mem.GetRanges(ctx, key, rs, opts); return err })
	return objs, err
}

func (f *fake) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (info blob.Info, err error) {
	err = f.call(ctx, blob.OpSet, func() (err error) { info, err = f.mem.Set(ctx, key, src, opts); return err })
	return info, err
}

func (f *fake) Stat(ctx context.Context, key string) (info blob.Info, err error) {
	err = f.call(ctx, blob.OpStat, func() (err error) { info, err = f.mem.Stat(ctx, key); return err })
	return info, err
}

func (f *fake) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		f.n++
		f.ctx = ctx
		f.seen = append(f.seen, opts.StartAfter)
		seq := f.mem.List(ctx, prefix, opts)
		if f.list != nil {
			seq = f.list(f.n, seq)
		}
		seq(yield)
	}
}

func (f *fake) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	return f.call(ctx, blob.OpDelete, func() error { return f.mem.Delete(ctx, key, opts) })
}

func (f *fake) DeleteAll(ctx context.Context, keys []string) error {
	return f.call(ctx, blob.OpDeleteAll, func() error {
		if f.deleteAll != nil {
			return f.deleteAll(ctx, f.n, keys)
		}
		return f.mem.DeleteAll(ctx, keys)
	})
}

func (f *fake) Restore(ctx context.Context, key string) (info blob.Info, err error) {
	err = f.call(ctx, blob.OpRestore, func() (err error) { info, err = f.mem.Restore(ctx, key); return err })
	return info, err
}

func (f *fake) Capabilities() blob.Capabilities {
	c := f.mem.Capabilities()
	c.SelfRetrying = f.self
	return c
}

func (f *fake) Close(ctx context.Context) error { return f.mem.Close(ctx) }

// wrap returns f under New.
func wrap(t *testing.T, f *fake, p Policy) blob.Blob {
	t.Helper()
	b, err := New(f, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, f *fake, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, err := f.mem.Set(t.Context(), k, blob.Bytes([]byte(k)), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func keysOf(t *testing.T, f *fake) []string {
	t.Helper()
	var keys []string
	for info, err := range f.mem.List(t.Context(), "", nil) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}
