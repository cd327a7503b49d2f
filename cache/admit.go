package cache

import (
	"maps"
	"time"

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
		h = newHead(info, c.seq.Add(1), time.Time{})
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

// admit puts what a request that began at that time with that number has brought into the tiers: the whole object, or the
// blocks that obj covers. It is called under the lock of the key's state.
func (c *Cache) admit(obj blob.Object, seq uint64, began time.Time, toDisk bool) {
	h := c.memory.peek(obj.Key)
	if h != nil && !same(h, obj.Info) {
		if h.seq > seq {
			return // a request that began later found another version: that one is not older than this
		}
		h = nil
	}
	next := newHead(obj.Info, seq, began)
	n := int64(len(obj.Data))
	fits := n <= c.opts.MaxFill
	switch isWhole := obj.Offset == 0 && n == obj.Size; {
	case isWhole && fits && n <= c.memory.largest && (h == nil || !h.whole || !h.complete):
		next.obj.Data, next.whole = unpinned(obj.Data), true
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
		h.checked.Store(max(h.checked.Load(), began.UnixNano()))
	}
	if !fits || n == 0 && obj.Size > 0 {
		return
	}
	from, to := c.covered(obj)
	if from > to || from == to && obj.Size > 0 {
		return
	}
	if h != nil && !h.whole && !next.whole && n <= c.memory.largest {
		c.addBlocks(h, obj, from, to)
	}
	if c.disk != nil && toDisk {
		c.disk.Put(obj.Info, from, obj.Data[from-obj.Offset:to-obj.Offset])
	}
}

// readmit puts bytes of the object of h that the tiers had already into memory. It is called under the lock of the key's state.
func (c *Cache) readmit(h *item, off int64, data []byte) {
	// Without a head in memory, the one that the read began with may be from before a write that has ended.
	if now := c.memory.peek(h.obj.Key); now != nil && now.complete && same(now, h.obj.Info) {
		c.admit(blob.Object{Info: h.obj.Info, Offset: off, Data: data}, now.seq, c.checkedAt(now), false)
	}
}

// covered returns the whole blocks in obj, as the bytes [from, to) of the object.
func (c *Cache) covered(obj blob.Object) (from, to int64) {
	b := c.opts.Block
	from, to = (obj.Offset+b-1)/b*b, obj.Offset+int64(len(obj.Data))
	if to < obj.Size {
		to = to / b * b
	}
	return from, to
}

// addBlocks hangs the blocks [from, to) on h. Each is a copy of its own unless obj is one block and no more: a
// block that stays must not keep its neighbours in memory.
func (c *Cache) addBlocks(h *item, obj blob.Object, from, to int64) {
	for off := from; off < to; off += c.opts.Block {
		end := min(off+c.opts.Block, to)
		data := obj.Data[off-obj.Offset : end-obj.Offset]
		if len(data) < len(obj.Data) {
			data = append(make([]byte, 0, len(data)), data...)
		} else {
			data = unpinned(data)
		}
		c.memory.add(h, off/c.opts.Block, data)
	}
}

// unpinned returns data, or a copy if it is a small part of something larger.
func unpinned(data []byte) []byte {
	if cap(data)-len(data) > len(data)/8+64 {
		return append(make([]byte, 0, len(data)), data...)
	}
	return data
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
