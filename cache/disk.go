package cache

import (
	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
)

// fromDisk reads what the disk has of pieces: those that it has wholly into their own data, and of the others the blocks that it has into found. It
// looks at the disk once for all pieces, and a second time for blocks.
func (r *reading) fromDisk(h *item, pieces []*piece, found map[int64][]byte) {
	if r.c.disk == nil || len(pieces) == 0 {
		return
	}
	b := r.c.opts.Block
	parts := make([]diskcache.Part, len(pieces), len(pieces)+1)
	for i, p := range pieces {
		parts[i] = diskcache.Part{Off: p.off, N: p.n}
		if int64(len(r.o.Dst)) >= p.n {
			parts[i].Dst = r.o.Dst[:p.n:p.n]
		}
	}
	hot := r.hot(h, parts)
	for k := range hot {
		parts = append(parts, diskcache.Part{Off: k * b, N: r.c.length(h, k)})
	}
	r.readParts(h, parts)
	lacking := make(map[int64]bool)
	for i, p := range pieces {
		if parts[i].OK {
			p.data = parts[i].Dst
			continue
		}
		for k := p.off / b; k*b < p.off+p.n && p.n > b; k++ { // else it would be the same question again
			lacking[k] = lacking[k] || found[k] == nil
		}
	}
	parts = parts[:0]
	for k := range lacking {
		if lacking[k] {
			parts = append(parts, diskcache.Part{Off: k * b, N: r.c.length(h, k)})
		}
	}
	if len(parts) == 0 {
		return
	}
	r.readParts(h, parts)
	for i := range parts {
		if parts[i].OK {
			found[parts[i].Off/b] = parts[i].Dst
		}
	}
}

// length returns the number of bytes in block k of the object of h.
func (c *Cache) length(h *item, k int64) int64 { return min(c.opts.Block, h.obj.Size-k*c.opts.Block) }

// hot returns the blocks of which parts read so much from disk, for so long, that they are better read whole and kept in memory. What goes there
// anyway is not counted.
func (r *reading) hot(h *item, parts []diskcache.Part) map[int64]bool {
	c := r.c
	b := c.opts.Block
	if !c.blocky || b > c.memory.largest {
		return nil
	}
	var hot map[int64]bool
	for _, p := range parts {
		if p.N > c.memory.largest {
			continue
		}
		for k := p.Off / b; k*b < p.Off+p.N; k++ {
			length := c.length(h, k)
			n := min(p.Off+p.N, k*b+length) - max(p.Off, k*b)
			if p.Dst == nil && n == length || !c.disk.Hot(r.key, k, n, length, c.opts.Memory/b) {
				continue
			}
			if hot == nil {
				hot = make(map[int64]bool)
			}
			hot[k] = true
		}
	}
	return hot
}

// readParts reads parts from disk, and puts into memory whole blocks of those that do not lie in the caller's Dst.
//
// A write that begins while the disk is read empties both tiers, and may do so before these bytes get to memory: the watch finds out, and
// they are the caller's alone.
func (r *reading) readParts(h *item, parts []diskcache.Part) {
	c := r.c
	own := make([]bool, len(parts))
	for i, p := range parts {
		own[i] = p.Dst == nil
	}
	w := c.epochs.watch(r.key)
	c.disk.ReadParts(r.key, h.obj.Version, parts)
	var cargo []freight
	for i, p := range parts {
		if p.OK && own[i] {
			cargo = append(cargo, c.unload(blob.Object{Info: h.obj.Info, Offset: p.Off, Data: p.Dst}))
		}
	}
	w.end(func() {
		for _, f := range cargo {
			c.readmit(h, f)
		}
	})
	for _, p := range parts {
		r.disk = r.disk || p.OK
	}
}
