package cache

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/gate"
)

// Cache is a Blob that keeps what it reads of another. Make it with New.
type Cache struct {
	inner  blob.Blob // named, not embedded: a new method of Blob must be decided on here
	opts   Options
	store  string // of inner, for errors
	born   time.Time
	blocky bool // ranged reads are widened to blocks

	memory *memory
	disk   *diskcache.Tier // nil: none
	epochs *epochs
	fills  allowance
	seq    atomic.Uint64 // numbers the fetches in the order in which they begin
	count  counters

	closed atomic.Bool
	calls  gate.Gate // calls of the methods, but for hits in memory, which need nothing that Close ends
	flying gate.Gate // fetches, which may outlive the calls that began them
}

var _ blob.Blob = (*Cache)(nil)

// New returns a cache in front of inner, which belongs to it from now on: Close closes inner. If New fails, it does not. nil options are the
// defaults: 256 MiB of memory and no disk. It fails with ErrInvalidOption, or because the directory of the disk tier cannot be had.
func New(ctx context.Context, inner blob.Blob, opts *Options) (*Cache, error) {
	store := inner.Capabilities().Store
	o, err := settle(opts)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, blob.Fail(blob.OpOpen, store, "", blob.NotApplied, err)
	}
	c := &Cache{inner: inner, opts: o, store: store, born: time.Now(), epochs: newEpochs()}
	c.fills.free.Store(o.FillBytes)
	if o.Off {
		o.Memory, o.Dir = 0, ""
	}
	if c.memory, err = newMemory(o); err != nil {
		return nil, blob.Fail(blob.OpOpen, store, "", blob.NotApplied, err)
	}
	if o.Dir != "" {
		if c.disk, err = diskcache.Open(o.Dir, diskcache.Options{Size: o.Disk, Logger: o.Logger}); err != nil {
			return nil, blob.Fail(blob.OpOpen, store, "", blob.NotApplied, err)
		}
	}
	// What no tier can keep, or the store would refuse, is not worth being rounded up to blocks, and without tiers there is nothing to do at all.
	c.blocky = o.Block <= min(o.MaxFill, o.FillBytes, o.MaxGet) && (o.Block <= c.memory.largest || c.disk != nil)
	c.opts.Off = o.Off || c.memory.cache == nil && c.disk == nil
	return c, nil
}

// Capabilities implements blob.Blob. They are those of the inner store.
func (c *Cache) Capabilities() blob.Capabilities { return c.inner.Capabilities() }

// Stat implements blob.Blob. It is answered from memory or disk where a Get would be.
func (c *Cache) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := c.calls.Enter(ctx, blob.OpStat, key); err != nil {
		return blob.Info{}, c.named(err)
	}
	defer c.calls.Leave()
	if err := blob.CheckName(blob.OpStat, key); err != nil {
		return blob.Info{}, c.named(err)
	}
	if !c.opts.Off && c.opts.Revalidate != Always {
		r := reading{c: c, key: key}
		h, err := r.current(ctx)
		if err == nil && h != nil {
			return h.obj.Info, nil
		}
		if err = c.answered(ctx, blob.OpStat, key, err); err != nil && !errors.Is(err, errStraight) {
			return blob.Info{}, err
		}
	}
	info, err := c.inner.Stat(ctx, key)
	c.heed(key, blob.Condition{}, info.Version, err)
	return info, err
}

// List implements blob.Blob. Listings are not cached.
func (c *Cache) List(ctx context.Context, prefix string, opts *blob.ListOptions) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := c.calls.Enter(ctx, blob.OpList, prefix); err != nil {
			yield(blob.Info{}, c.named(err))
			return
		}
		defer c.calls.Leave()
		c.inner.List(ctx, prefix, opts)(yield)
	}
}

// Close implements blob.Blob. It ends in this order: new calls are refused, those in flight end, fetches that nobody waits for any more end,
// the disk tier is written out, the inner store is closed.
func (c *Cache) Close(ctx context.Context) error {
	if err := c.shut(ctx); err != nil {
		return &blob.OwedError{Err: err}
	}
	return c.inner.Close(ctx)
}

// shut is Close but for the inner store.
func (c *Cache) shut(ctx context.Context) error {
	c.closed.Store(true)
	if err := c.calls.Shut(ctx); err != nil {
		return err
	}
	if err := c.flying.Shut(ctx); err != nil {
		return err
	}
	if c.disk != nil {
		if err := c.disk.Close(ctx); err != nil && ctx.Err() != nil {
			return err // otherwise it is the cache's own trouble: entries are lost and no object
		}
	}
	c.memory.clear()
	return nil
}

// fresh reports whether h needs no question to the store.
func (c *Cache) fresh(h *item) bool {
	switch ttl := c.opts.Revalidate; {
	case ttl == 0:
		return true
	case ttl < 0:
		return false
	default:
		at := h.checked.Load()
		return at != 0 && c.now()-at <= int64(ttl)
	}
}

// now returns the nanoseconds since c was made, never 0. They are of the monotonic clock: entries would not grow old while a wall
// clock catches up with where it was before someone set it back.
func (c *Cache) now() int64 { return max(1, int64(time.Since(c.born))) }

// invalidate forgets key, and what is on its way into the tiers: the store was seen to have something else.
func (c *Cache) invalidate(key string) { c.begin(key).written(nil) }

// begin begins a write of key. When it returns the tiers hold nothing of it.
func (c *Cache) begin(key string) watch {
	w := c.epochs.begin(key, func() { c.memory.drop(key) })
	// Nothing can be put meanwhile, so this need not be under the lock.
	if c.disk != nil {
		c.disk.Drop(key)
	}
	return w
}

// named completes an error made by package blob or a gate, which do not know the store.
func (c *Cache) named(err error) error { return blob.Named(c.store, err) }
