package cache

import (
	"context"
	"errors"

	"github.com/wholeblob/wholeblob/blob"
)

// The one rule of all reads: the cache answers with bytes or not at all. Whatever a store would refuse, for a condition, a range, a size or a
// checksum, the store itself is asked, so that the answer is the store's and up to date.

// Get implements blob.Blob.
func (c *Cache) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if c.closed.Load() || ctx.Err() != nil || c.opts.Revalidate < 0 || opts != nil && opts.SkipCache {
		return c.get(ctx, key, opts)
	}
	// A hit in memory is not counted in as a call: it needs nothing that Close ends.
	h := c.memory.hot(key)
	if h == nil || !h.complete || c.opts.Revalidate > 0 && !c.fresh(h) {
		return c.get(ctx, key, opts)
	}
	if opts == nil && h.whole && h.obj.Size <= c.opts.MaxGet {
		if c.count.hit(len(h.obj.Data)) {
			c.memory.used(key)
		}
		return h.obj, nil
	}
	if off, data, ok := c.part(h, opts); ok {
		if c.count.hit(len(data)) && h.whole {
			c.memory.used(key)
		}
		return blob.Object{Info: h.obj.Info, Offset: off, Data: data}, nil
	}
	return c.get(ctx, key, opts)
}

// get is Get for all but hits in memory.
func (c *Cache) get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if err := c.calls.Enter(ctx, blob.OpGet, key); err != nil {
		return blob.Object{}, c.named(err)
	}
	defer c.calls.Leave()
	o, err := blob.CheckGet(key, opts)
	if err != nil {
		return blob.Object{}, c.named(err)
	}
	if !c.opts.Off && !o.SkipCache {
		objs, err := c.read(ctx, blob.OpGet, key, []blob.Range{o.Range}, o)
		if err == nil {
			return objs[0], nil
		}
		if !errors.Is(err, errStraight) {
			return blob.Object{}, err
		}
	}
	c.count.bypassed.Add(1)
	obj, err := c.inner.Get(ctx, key, opts)
	c.heed(key, o.If, obj.Version, err)
	return obj, err
}

// GetRanges implements blob.Blob.
func (c *Cache) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	if err := c.calls.Enter(ctx, blob.OpGetRanges, key); err != nil {
		return nil, c.named(err)
	}
	defer c.calls.Leave()
	o, err := blob.CheckGetRanges(key, rs, opts)
	if err != nil {
		return nil, c.named(err)
	}
	if len(rs) == 0 {
		return nil, nil
	}
	if !c.opts.Off && !o.SkipCache {
		objs, err := c.read(ctx, blob.OpGetRanges, key, rs, o)
		if err == nil || !errors.Is(err, errStraight) {
			return objs, err
		}
	}
	c.count.bypassed.Add(1)
	objs, err := c.inner.GetRanges(ctx, key, rs, opts)
	version := ""
	if len(objs) > 0 {
		version = objs[0].Version
	}
	c.heed(key, o.If, version, err)
	return objs, err
}

// heed drops what is cached of key if a read or Stat that went straight to the store found that it is not the current object: the answer
// has another version, or there is none, or the cached version was asked for and refused.
func (c *Cache) heed(key string, cond blob.Condition, version string, err error) {
	if c.opts.Off {
		return
	}
	h, stale := c.memory.peek(key), false
	switch {
	case err == nil && version != "":
		stale = h != nil && h.obj.Version != version || c.disk != nil && c.disk.Other(key, version)
	case blob.KindOf(err) == blob.ErrNotFound:
		stale = true
	case blob.KindOf(err) == blob.ErrPrecondition: // a refusal of any other version says nothing of this one
		if h == nil {
			h = c.known(key)
		}
		v, _ := cond.Version()
		stale = h != nil && h.obj.Version == v
	}
	if stale {
		c.invalidate(key)
	}
}

// part answers a Get from memory if the bytes lie there in one piece. What is not allowed it leaves to others.
func (c *Cache) part(h *item, opts *blob.GetOptions) (off int64, data []byte, ok bool) {
	if opts == nil {
		opts = new(blob.GetOptions)
	}
	if opts.If.Absent() || opts.Want.Check() != nil {
		return 0, nil, false
	}
	off, n, err := opts.Range.Resolve(h.obj.Size)
	if err != nil || !c.allowed(h, opts, n) {
		return 0, nil, false
	}
	data, ok = c.remembered(h, off, n)
	if !ok || opts.Want.Verify(h.obj.Size, off, data) != nil {
		return 0, nil, false
	}
	return off, into(opts.Dst, data), true
}

// allowed reports whether n bytes of the object of h are what a store would answer with.
func (c *Cache) allowed(h *item, o *blob.GetOptions, n int64) bool {
	if v, ok := o.If.Version(); ok && v != h.obj.Version {
		return false
	}
	return n <= c.opts.MaxGet && o.Want.VerifySize(h.obj.Size) == nil
}

// remembered returns the bytes [off, off+n), shared and read-only, if they lie in memory in one piece.
func (c *Cache) remembered(h *item, off, n int64) ([]byte, bool) {
	if n == 0 {
		return []byte{}, true
	}
	if h.whole {
		return h.obj.Data[off : off+n : off+n], true
	}
	b := c.opts.Block
	i := off / b
	if (off+n-1)/b != i {
		return nil, false
	}
	data := c.memory.at(h, i)
	if data == nil {
		return nil, false
	}
	off -= i * b
	return data[off : off+n : off+n], true
}

// into copies data to the caller's Dst if that is long enough, else returns data itself.
func into(dst, data []byte) []byte {
	if len(dst) < len(data) || len(dst) == 0 {
		return data
	}
	dst = dst[:len(data):len(data)]
	copy(dst, data)
	return dst
}

// attempts is how often a read looks again, since what it had found was out of date or came while it looked.
const attempts = 3

// read answers through the cache, or with errStraight.
func (c *Cache) read(ctx context.Context, op, key string, rs []blob.Range, o blob.GetOptions) (objs []blob.Object, err error) {
	for range attempts {
		r := reading{c: c, key: key, rs: rs, o: o}
		var h *item
		if h, err = r.current(ctx); err == nil {
			objs, err = r.answer(ctx, h)
		}
		if !errors.Is(err, errAgain) {
			break
		}
	}
	return objs, c.answered(ctx, op, key, err)
}

// answered returns what the caller of op is to be told of err: errStraight, if the store is to be asked once more.
func (c *Cache) answered(ctx context.Context, op, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAgain), errors.Is(err, errStraight):
		return errStraight
	case ctx.Err() != nil:
		return blob.Fail(op, c.store, key, blob.NotApplied, ctx.Err())
	}
	// The error of a Get that was sent for the caller's operation, and perhaps for others too, so it is copied.
	if e, ok := err.(*blob.Error); ok && e.Op != op { //nolint:errorlint // only the outermost may be replaced
		own := *e
		own.Op = op
		return &own
	}
	return err
}

// reading is one call of Get or GetRanges.
type reading struct {
	c   *Cache
	key string
	rs  []blob.Range
	o   blob.GetOptions

	began   bool // without a head
	fetched bool // something had to be fetched
	disk    bool // something came from disk
}

// fetch sends one request, or waits for someone else's, and returns what is exactly asked for.
func (r *reading) fetch(ctx context.Context, req request, size int64, landed func() bool) (blob.Object, error) {
	f, err := r.c.join(ctx, r.key, req, size, landed)
	if err != nil {
		return blob.Object{}, err
	}
	defer f.leave()
	return r.result(ctx, f)
}

func (r *reading) result(ctx context.Context, f *flight) (blob.Object, error) {
	r.fetched = true
	obj, err := f.wait(ctx)
	if err == nil && !f.sound {
		err = errStraight
	}
	switch blob.KindOf(err) {
	case blob.ErrInvalidRange, blob.ErrTooLarge: // of the request that was made of the caller's, and perhaps not of the caller's
		err = errStraight
	case blob.ErrCorrupt, blob.ErrTruncated:
		// The caller's range may be sound where the blocks around it are not, and may meet the caller's Want.
		if r.o.Want != (blob.Want{}) || len(r.rs) != 1 || f.req.Range != r.rs[0] {
			err = errStraight
		}
	case blob.ErrNotFound, blob.ErrPrecondition:
		if !r.began || r.c.memory.peek(r.key) != nil { // else there is nothing to forget
			f.refuted.Do(func() { r.c.invalidate(r.key) })
		}
		if blob.KindOf(err) == blob.ErrPrecondition && r.o.If.IsZero() {
			err = errAgain // the condition was ours
		}
	}
	return obj, err
}

// current returns what is known of the object, confirmed if it has to be; nil if the read has to begin without a head.
func (r *reading) current(ctx context.Context) (*item, error) {
	h := r.c.known(r.key)
	if h == nil || h.complete && r.c.fresh(h) {
		return h, nil
	}
	return r.confirm(ctx, h)
}

// confirm asks the store whether h is still current, or for what its Set left unsaid. It returns nil if it is not: what the store has
// instead is known by now.
func (r *reading) confirm(ctx context.Context, h *item) (*item, error) {
	obj, err := r.fetch(ctx, question, 0, func() bool {
		now := r.c.memory.peek(r.key)
		return now != nil && now.complete && r.c.fresh(now)
	})
	r.fetched = false // a question is no miss
	switch {
	case err != nil:
		return nil, err
	case !same(h, obj.Info):
		return nil, nil
	case h.complete:
		return h, nil
	}
	return &item{obj: blob.Object{Info: obj.Info, Data: h.obj.Data}, whole: h.whole, complete: true}, nil
}

// answer reads with the help of h, which may be nil.
func (r *reading) answer(ctx context.Context, h *item) ([]blob.Object, error) {
	if h == nil {
		r.began = true
		obj, err := r.discover(ctx)
		r.began = false
		if err != nil {
			return nil, err
		}
		if objs, ok := r.cut(obj); ok {
			r.count(objs)
			return objs, nil
		}
		// The fetch has made a head, unless something hindered it: then this one serves for the one call.
		if h = r.c.memory.peek(r.key); h == nil || !same(h, obj.Info) || !h.complete {
			h = &item{obj: blob.Object{Info: obj.Info}, complete: true}
		}
	}
	objs, err := r.serve(ctx, h)
	if err == nil {
		r.count(objs)
	}
	return objs, err
}

// count counts the call, once.
func (r *reading) count(objs []blob.Object) {
	n := 0
	for i := range objs {
		n += len(objs[i].Data)
	}
	switch {
	case r.fetched:
		r.c.count.misses.Add(1)
	case r.disk:
		r.c.count.diskHits.Add(1)
		r.c.count.diskBytes.Add(int64(n))
	default:
		r.c.count.hit(n)
	}
}
