package cache

import (
	"maps"

	"github.com/wholeblob/wholeblob/blob"
)

// known returns what the tiers know of key, nil if nothing. It may be incomplete, or due for revalidation.
func (c *Cache) known(key string) *item {
	if h := c.memory.head(key); h != nil || c.disk == nil {
		return h
	}
	// What the disk says may be from before a write that begins and ends while we ask: it is put into memory only if no write did. The read
	// itself may use it all the same, since it began before that write ended.
	w := c.epochs.watch(key)
	info, ok := c.disk.Lookup(key)
	var h *item
	if ok {
		h = newHead(info, 0, 0) // older than any answer of the store
		h.complete = !info.ModTime.IsZero()
	}
	w.end(func() {
		if now := c.memory.peek(key); now != nil {
			h = now
		} else if h != nil {
			c.memory.put(key, h)
		}
	})
	return h
}

// freight is an object, or a part of one, made ready for the tiers. What has to be copied is copied before the lock is taken.
type freight struct {
	obj      blob.Object
	whole    []byte // what memory keeps, if that is the whole object
	from, to int64  // the whole blocks in obj, as bytes of the object; equal: none, unless the object is empty
	blocks   [][]byte
}

// unload makes obj ready for admit.
func (c *Cache) unload(obj blob.Object) freight {
	f, n := freight{obj: obj}, int64(len(obj.Data))
	if n > c.opts.MaxFill || n == 0 && obj.Size > 0 {
		return f // tells what is current and no more
	}
	f.from, f.to = c.covered(obj)
	switch {
	case n > c.memory.largest:
	case n == obj.Size:
		f.whole = unpinned(obj.Data)
		if n == 0 {
			f.whole = []byte{} // not nil: it is there
		}
	default:
		f.blocks = c.split(obj, f.from, f.to)
	}
	return f
}

// admit puts what a request that began at that time with that number has brought into the tiers: the whole object, or the
// blocks that it covers. It is called under the lock of the key's state.
func (c *Cache) admit(f freight, seq uint64, began int64, toDisk bool) {
	obj := f.obj
	h := c.memory.peek(obj.Key)
	if h != nil && !same(h, obj.Info) {
		if h.seq > seq {
			return // a request that began later found another version: that one is not older than this
		}
		h = nil
	}
	next := newHead(obj.Info, seq, began)
	if h != nil { // what was found once more is as new as the newest who found it
		h.seq = max(h.seq, seq)
		next.seq = h.seq
		next.checked.Store(max(h.checked.Load(), began))
	}
	switch {
	case f.whole != nil && (h == nil || !h.whole || !h.complete):
		next.obj.Data, next.whole = f.whole, true
		c.memory.put(obj.Key, next)
	case h == nil:
		h = next
		c.memory.put(obj.Key, h)
	case !h.complete:
		next.obj.Data, next.whole = h.obj.Data, h.whole
		c.memory.put(obj.Key, next)
		if c.disk != nil && next.whole && toDisk {
			c.disk.Put(obj.Info, 0, next.obj.Data)
		}
		h = next
	default:
		h.checked.Store(next.checked.Load())
	}
	if h != nil && !h.whole {
		for i, data := range f.blocks {
			c.memory.add(h, f.from/c.opts.Block+int64(i), data)
		}
	}
	if c.disk == nil || !toDisk {
		return
	}
	c.disk.Learn(obj.Info)
	if f.from < f.to || f.whole != nil {
		c.disk.Put(obj.Info, f.from, obj.Data[f.from-obj.Offset:f.to-obj.Offset])
	}
}

// readmit puts bytes of the object of h that the tiers had already into memory. It is called under the lock of the key's state.
func (c *Cache) readmit(h *item, f freight) {
	// Without a head in memory, the one that the read began with may be from before a write that has ended.
	if now := c.memory.peek(h.obj.Key); now != nil && now.complete && same(now, h.obj.Info) {
		c.admit(f, now.seq, now.checked.Load(), false)
	}
}

// covered returns the whole blocks in obj, as the bytes [from, to) of the object.
func (c *Cache) covered(obj blob.Object) (from, to int64) {
	b := c.opts.Block
	from, to = obj.Offset, obj.Offset+int64(len(obj.Data))
	if in := from % b; in > 0 {
		if b-in > to-from {
			return to, to // it ends in the block in which it begins
		}
		from += b - in
	}
	if to < obj.Size {
		to = max(from, to/b*b)
	}
	return from, to
}

// split returns the blocks of [from, to). Each is a copy of its own unless obj is one block and no more: a
// block that stays must not keep its neighbours in memory.
func (c *Cache) split(obj blob.Object, from, to int64) (blocks [][]byte) {
	for from < to {
		n := min(c.opts.Block, to-from)
		data := obj.Data[from-obj.Offset:][:n]
		if len(data) < len(obj.Data) {
			data = append(make([]byte, 0, n), data...)
		} else {
			data = unpinned(data)
		}
		blocks, from = append(blocks, data), from+n
	}
	return blocks
}

// unpinned returns data, or a copy if it is a small part of something larger. It has no room behind it: two who append to what they
// share would write to the same place.
func unpinned(data []byte) []byte {
	if cap(data)-len(data) > len(data)/8+64 {
		return append(make([]byte, 0, len(data)), data...)
	}
	return data[:len(data):len(data)]
}

// contradicts reports whether info gives a version another size than it is known to have.
func (c *Cache) contradicts(req request, info blob.Info) bool {
	if v, _ := req.If.Version(); v == info.Version && req.Size > 0 && req.Size != info.Size {
		return true
	}
	h := c.memory.peek(info.Key)
	return h != nil && h.obj.Version == info.Version && h.obj.Size != info.Size
}

// same reports whether info can be of the object that h is the head of. Equal versions are not enough: on some stores equal content has an
// equal version, whatever its metadata.
func same(h *item, info blob.Info) bool {
	if h.obj.Version != info.Version || h.obj.Size != info.Size {
		return false
	}
	return !h.complete || h.obj.Info.ModTime.Equal(info.ModTime) && h.obj.Info.ContentType == info.ContentType && maps.Equal(h.obj.Info.Metadata, info.Metadata)
}
