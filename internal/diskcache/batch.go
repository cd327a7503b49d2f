package diskcache

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/wholeblob/wholeblob/blob"
)

const (
	// maxGap is how many bytes between two ranges are read along, so that one system call does for both. In the page cache a call costs
	// as much as copying and summing about 8 KiB (BenchmarkDiskHit4KiB), on a disk far more: twice that is a fair price.
	maxGap = 16 << 10

	maxBufs = 1024 // of one preadv: IOV_MAX of Linux and macOS

	maxPooledScratch = 64 << 10
)

// Part is a range of an object that is wanted of the tier.
type Part struct {
	Off, N int64
	Dst    []byte // of N bytes; nil: made once it is known that all of it is there
	OK     bool   // the answer: Dst has the bytes, and they were checked

	there bool  // the index has all of it
	left  int64 // bytes yet to be read, then
}

// segment is what one file has of a part.
type segment struct {
	run    *run
	part   int
	off, n int64 // in the object
	dst    []byte
}

// ReadParts is Read for many ranges of one object, each of which is answered or not. The index is asked once, and each file is taken once; what lies
// in a file beside each other, or nearly, is one system call, straight into the parts. Parts may overlap.
func (d *Tier) ReadParts(key, version string, parts []Part) {
	g := d.gen.Load()
	if g != nil {
		d.readPlanned(g, key, version, parts)
	}
	for i := range parts {
		if parts[i].OK {
			d.n.hits.Add(1)
		} else {
			d.n.misses.Add(1)
		}
	}
}

func (d *Tier) readPlanned(g *generation, key, version string, parts []Part) {
	hash, ver := hashKey(key), hashVersion(version)
	sh := g.shard(hash)
	if d.ready(g, sh) != nil {
		return
	}
	segs := sh.plan(hash, ver, parts)
	for i := range segs {
		s := &segs[i]
		p := &parts[s.part]
		if p.Dst == nil {
			p.Dst = make([]byte, p.N)
		}
		s.dst = p.Dst[s.off-p.Off:][:s.n]
	}
	slices.SortFunc(segs, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.run.off, b.run.off), cmp.Compare(a.run.seq, b.run.seq), cmp.Compare(a.off, b.off))
	})
	for len(segs) > 0 {
		n := 1
		for n < len(segs) && segs[n].run == segs[0].run {
			n++
		}
		d.readSegs(g, sh, key, version, segs[:n], parts)
		segs = segs[n:]
	}
	for i := range parts {
		p := &parts[i]
		// What had been found and could not be read may have been evicted, or replaced by a larger run, in the meantime.
		p.OK = p.there && (p.left == 0 || d.readRuns(g, key, version, p.Off, p.Dst))
	}
}

// plan finds the files of all parts that are wholly there.
func (sh *shard) plan(hash keyHash, ver uint64, parts []Part) (segs []segment) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	o := sh.objects[hash]
	if o == nil || o.ver != ver {
		return nil
	}
	for i := range parts {
		p := &parts[i]
		if p.N <= 0 || p.Off < 0 || !o.covers(p.Off, p.Off+p.N) {
			continue
		}
		p.there, p.left = true, p.N
		for off := p.Off; off < p.Off+p.N; {
			r := o.find(off)
			n := min(p.Off+p.N, r.end()) - off
			segs = append(segs, segment{run: r, part: i, off: off, n: n})
			off += n
		}
	}
	return segs
}

// Has reports whether the index knows of all bytes [off, off+n).
func (d *Tier) Has(key, version string, off, n int64) bool {
	g := d.gen.Load()
	if g == nil {
		return false
	}
	hash := hashKey(key)
	sh := g.shard(hash)
	if d.ready(g, sh) != nil {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	o := sh.objects[hash]
	return o != nil && o.ver == hashVersion(version) && o.covers(off, off+n)
}

// readSegs reads segs, which are of one file and in order.
func (d *Tier) readSegs(g *generation, sh *shard, key, version string, segs []segment, parts []Part) {
	r := segs[0].run
	h, _ := d.acquire(g, sh, r)
	if h == nil {
		return
	}
	defer d.handles.release(h)
	if !h.of(key, version) {
		return
	}
	b := d.handles.batch()
	defer d.handles.put(b)
	for len(segs) > 0 {
		n := b.lay(h, segs)
		if err := d.readBatch(h, b); err != nil {
			d.damaged(g, sh, r, err)
			return
		}
		b.copyOverlaps(h, segs[:n])
		for _, s := range segs[:n] {
			parts[s.part].left -= s.n
		}
		segs = segs[n:]
	}
	r.visited.Store(true)
}

// batch is one system call: checksum blocks beside each other, into many buffers.
type batch struct {
	start   int64    // in the payload, where a checksum block begins
	end     int64    // where one ends
	bufs    [][]byte // for the bytes from start to end, in order
	iov     [][]byte // bufs, as far as they are yet to be filled
	scratch []byte   // what was not asked for, of the blocks that are read
	seg     [1]segment
}

func (c *handleCache) batch() *batch {
	if b, ok := c.pool.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

// put keeps b for the next one, without what is the caller's.
func (c *handleCache) put(b *batch) {
	clear(b.bufs)
	clear(b.iov[:cap(b.iov)])
	b.seg[0] = segment{}
	if cap(b.scratch) > maxPooledScratch {
		b.scratch = nil
	}
	c.pool.Put(b)
}

// lay makes b the call for as many of segs as lie near each other, and returns their number. Where two overlap, the bytes go to the first.
func (b *batch) lay(h *handle, segs []segment) (n int) {
	block := int64(h.sumBlock)
	b.start = (segs[0].off - h.off) / block * block
	pos, spare, bufs := b.start, int64(0), 1
	for _, s := range segs {
		from, to := s.off-h.off, s.off-h.off+s.n
		if from-pos > maxGap && n > 0 || bufs+2 > maxBufs {
			break
		}
		spare += max(0, from-pos)
		pos = max(pos, to)
		bufs += 2
		n++
	}
	b.end = min((pos+block-1)/block*block, h.length)
	spare += b.end - pos
	if int64(cap(b.scratch)) < spare {
		b.scratch = make([]byte, spare)
	}
	scratch := b.scratch[:spare]
	b.bufs, pos = b.bufs[:0], b.start
	skip := func(to int64) {
		if to > pos {
			b.bufs = append(b.bufs, scratch[:to-pos])
			scratch, pos = scratch[to-pos:], to
		}
	}
	for _, s := range segs[:n] {
		from, to := s.off-h.off, s.off-h.off+s.n
		skip(from)
		if to > pos {
			b.bufs = append(b.bufs, s.dst[pos-from:])
			pos = to
		}
	}
	skip(b.end)
	return n
}

// readBatch fills the buffers and checks all blocks in them.
func (d *Tier) readBatch(h *handle, b *batch) error {
	if d.fs.fault != nil {
		if err := d.fs.check("pread", h.run.name()); err != nil {
			return err
		}
	}
	d.n.reads.Add(1)
	if err := b.fill(h.file, h.payload+b.start); err != nil {
		return err
	}
	d.n.readBytes.Add(b.end - b.start)
	return b.check(h)
}

func (b *batch) fill(f *os.File, off int64) error {
	if len(b.bufs) == 1 {
		_, err := f.ReadAt(b.bufs[0], off)
		return err
	}
	b.iov = append(b.iov[:0], b.bufs...)
	for iov := b.iov; len(iov) > 0; {
		n, err := readVector(f, iov, off)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		off += int64(n)
		for len(iov) > 0 && n >= len(iov[0]) {
			n -= len(iov[0])
			iov = iov[1:]
		}
		if n > 0 {
			iov[0] = iov[0][n:]
		}
	}
	return nil
}

func (b *batch) check(h *handle) error {
	at, sum, need := b.start/int64(h.sumBlock), uint32(0), h.sumBlock
	for i, buf := range b.bufs {
		for len(buf) > 0 {
			n := min(need, len(buf))
			sum = checksum(sum, buf[:n])
			buf = buf[n:]
			if need -= n; need > 0 && (len(buf) > 0 || i < len(b.bufs)-1) {
				continue // the block goes on in the next buffer
			}
			if sum != binary.LittleEndian.Uint32(h.sums[at*sumSize:]) {
				return fmt.Errorf("%w: CRC32C of block %d is %08x", blob.ErrCorrupt, at, sum)
			}
			at, sum, need = at+1, 0, h.sumBlock
		}
	}
	return nil
}

// copyOverlaps gives each of segs the bytes that went to one before it.
func (b *batch) copyOverlaps(h *handle, segs []segment) {
	pos := b.start
	for _, s := range segs {
		from, to := s.off-h.off, s.off-h.off+s.n
		if both := min(pos, to) - from; both > 0 {
			b.copyOut(s.dst[:both], from-b.start)
		}
		pos = max(pos, to)
	}
}

// copyOut copies what lies at off in the buffers to dst.
func (b *batch) copyOut(dst []byte, off int64) {
	for _, buf := range b.bufs {
		if off >= int64(len(buf)) {
			off -= int64(len(buf))
			continue
		}
		n := copy(dst, buf[off:])
		if dst, off = dst[n:], 0; len(dst) == 0 {
			return
		}
	}
}

// readAt fills dst with the entry's bytes from rel on, checked, by one system call.
func (d *Tier) readAt(h *handle, rel int64, dst []byte) error {
	b := d.handles.batch()
	defer d.handles.put(b)
	b.seg[0] = segment{off: h.off + rel, n: int64(len(dst)), dst: dst}
	b.lay(h, b.seg[:])
	return d.readBatch(h, b)
}
