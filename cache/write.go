package cache

import (
	"bytes"
	"context"
	"io"
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

// Set implements blob.Blob. Whatever becomes of it, nothing is cached of what was there before; if it succeeds, what was written may be.
func (c *Cache) Set(ctx context.Context, key string, src blob.Source, opts *blob.SetOptions) (blob.Info, error) {
	if err := c.calls.Enter(ctx, blob.OpSet, key); err != nil {
		return blob.Info{}, c.named(err)
	}
	defer c.calls.Leave()
	if c.opts.Off {
		return c.inner.Set(ctx, key, src, opts)
	}
	o, err := blob.CheckSet(key, src, opts)
	if err != nil {
		return blob.Info{}, c.named(err)
	}
	var h *item // of what was written; stays nil if there is nothing to keep, and if the inner store panics
	var data []byte
	w := c.begin(key)
	defer func() {
		w.written(func() {
			if h != nil {
				c.writeThrough(h, data)
			}
		})
	}()
	began, seq := c.now(), c.seq.Add(1)
	info, err := c.inner.Set(ctx, key, src, opts)
	if err != nil {
		return info, err
	}
	// The copy is made before Set returns: afterwards the bytes are the caller's again.
	copied, give := c.copied(src, info)
	if copied == nil {
		return info, nil
	}
	defer give()
	own := info
	own.Key, own.Metadata = key, maps.Clone(info.Metadata) // the returned one is the caller's, who may not know that it is read-only
	h, data = newHead(own, seq, began), copied
	// A store need not say with a Set all that a Get says, and what it did not say is not invented: such a head is incomplete, and the first
	// read of it asks.
	h.complete = !info.ModTime.IsZero() && info.ContentType == o.ContentType && maps.Equal(info.Metadata, o.Metadata)
	return info, nil
}

// copied returns a copy of the bytes of src, and what gives the fill's bytes back; nil if they are not to be kept.
func (c *Cache) copied(src blob.Source, info blob.Info) (data []byte, give func()) {
	if c.opts.NoWriteThrough || info.Version == "" || info.Size != src.Size() || info.Size > c.opts.MaxFill {
		return nil, nil
	}
	if info.Size > c.memory.largest && c.disk == nil {
		return nil, nil
	}
	r, ok := src.ReaderAt().(*bytes.Reader) // a Bytes source: any other would have to be read again, and may say something else
	if !ok {
		return nil, nil
	}
	if !c.fills.take(info.Size) {
		c.count.skipped.Add(1)
		return nil, nil
	}
	data = make([]byte, info.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		data = nil
	}
	return data, func() { c.fills.give(info.Size) }
}

// writeThrough keeps what was written, all of whose bytes are in data. It is called under the lock of the key's state.
func (c *Cache) writeThrough(h *item, data []byte) {
	if h.obj.Size <= c.memory.largest {
		h.obj.Data, h.whole = data, true
	}
	c.memory.put(h.obj.Key, h)
	kept := h.whole
	if c.disk != nil {
		info := h.obj.Info
		if !h.complete { // which the disk says by having no ModTime
			info = blob.Info{Key: info.Key, Size: info.Size, Version: info.Version}
		}
		kept = c.disk.Put(info, 0, data) || kept
	}
	if kept {
		c.count.writesThrough.Add(1)
	}
}

// Delete implements blob.Blob.
func (c *Cache) Delete(ctx context.Context, key string, opts *blob.DeleteOptions) error {
	if err := c.calls.Enter(ctx, blob.OpDelete, key); err != nil {
		return c.named(err)
	}
	defer c.calls.Leave()
	if c.opts.Off {
		return c.inner.Delete(ctx, key, opts)
	}
	if _, err := blob.CheckDelete(key, opts); err != nil {
		return c.named(err)
	}
	defer c.begin(key).written(nil)
	return c.inner.Delete(ctx, key, opts)
}

// DeleteAll implements blob.Blob.
func (c *Cache) DeleteAll(ctx context.Context, keys []string) error {
	if err := c.calls.Enter(ctx, blob.OpDeleteAll, ""); err != nil {
		return notTried(keys, c.named(err))
	}
	defer c.calls.Leave()
	if c.opts.Off {
		return c.inner.DeleteAll(ctx, keys)
	}
	if err := blob.CheckDeleteAll(keys); err != nil {
		return c.named(err)
	}
	begun := make([]watch, len(keys))
	for i, key := range keys {
		begun[i] = c.begin(key)
	}
	defer func() {
		for _, w := range begun {
			w.written(nil)
		}
	}()
	return c.inner.DeleteAll(ctx, keys)
}

// notTried names each key with the reason why it was not tried. Without keys it is the reason.
func notTried(keys []string, reason error) error {
	if len(keys) == 0 {
		return reason
	}
	failed := make([]blob.KeyError, len(keys))
	for i, key := range keys {
		failed[i] = blob.KeyError{Key: key, Err: reason}
	}
	return &blob.DeleteError{Failed: failed}
}

// Restore implements blob.Blob.
func (c *Cache) Restore(ctx context.Context, key string) (blob.Info, error) {
	if err := c.calls.Enter(ctx, blob.OpRestore, key); err != nil {
		return blob.Info{}, c.named(err)
	}
	defer c.calls.Leave()
	if c.opts.Off {
		return c.inner.Restore(ctx, key)
	}
	if err := blob.CheckName(blob.OpRestore, key); err != nil {
		return blob.Info{}, c.named(err)
	}
	defer c.begin(key).written(nil)
	return c.inner.Restore(ctx, key)
}
