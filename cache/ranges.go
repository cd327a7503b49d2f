package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/wholeblob/wholeblob/blob"
)

// maxRun is the most bytes that are fetched by one request for blocks.
const maxRun = 8 << 20

// discover sends the first request for an object of which nothing is known. A range of known place is widened to
// blocks; From and Last, whose place depends on the size, go as they are, and the blocks that they happen to cover are kept. GetRanges begins with its
// first range that has a place, and goes on with the rest once the version is known.
func (r *reading) discover(ctx context.Context) (blob.Object, error) {
	if len(r.rs) > 1 && !r.c.blocky {
		return blob.Object{}, errStraight
	}
	req, size := request{Range: blob.Span(0, 0), If: r.o.If, Want: r.o.Want}, int64(0)
	for _, rg := range r.rs {
		wide, n, ok := r.c.widen(rg)
		if ok {
			req.Range, size = wide, n
			if n > r.c.opts.MaxGet { // as it is, then: it still tells what there is
				req.Range = rg
			}
			break
		}
		if len(r.rs) == 1 {
			req.Range = rg
			if size, ok = rg.Limit(); !ok {
				size = min(r.c.opts.Block, r.c.opts.MaxFill, r.c.opts.FillBytes) // a guess
				if r.o.Want.HasSize {
					size = r.o.Want.Size
				}
			}
		}
	}
	if size > r.c.opts.MaxFill || size > r.c.opts.FillBytes {
		return blob.Object{}, errStraight
	}
	return r.fetch(ctx, req, size, func() bool { return r.c.memory.peek(r.key) != nil })
}

// widen returns the blocks that a Span touches.
func (c *Cache) widen(rg blob.Range) (wide blob.Range, size int64, ok bool) {
	off, _ := rg.Start()
	n, limited := rg.Limit()
	if _, ok := rg.Start(); !c.blocky || !ok || !limited || n == 0 || off > 1<<60 || n > 1<<60 {
		return rg, 0, false
	}
	b := c.opts.Block
	from, to := off/b*b, (off+n+b-1)/b*b
	return blob.Span(from, to-from), to - from, true
}

// cut answers the call from one object if that covers it.
func (r *reading) cut(obj blob.Object) ([]blob.Object, bool) {
	objs, sum := make([]blob.Object, len(r.rs)), int64(0)
	for i, rg := range r.rs {
		off, n, err := rg.Resolve(obj.Size)
		if err != nil || off < obj.Offset || off+n > obj.Offset+int64(len(obj.Data)) || n > r.c.opts.MaxGet-sum {
			return nil, false
		}
		sum += n
		data := obj.Data[off-obj.Offset:][:n:n]
		if r.o.Want.Verify(obj.Size, off, data) != nil {
			return nil, false
		}
		objs[i] = blob.Object{Info: obj.Info, Offset: off, Data: r.own(data, len(obj.Data))}
	}
	return objs, true
}

// own returns data, which lies in a buffer of that many bytes, as the caller's result: in Dst, or a copy if the buffer is more than
// the block that stays in the cache anyway.
func (r *reading) own(data []byte, buffer int) []byte {
	if len(r.o.Dst) >= len(data) && len(r.o.Dst) > 0 {
		return into(r.o.Dst, data)
	}
	if int64(buffer) > r.c.opts.Block && len(data) < buffer/2 {
		return append(make([]byte, 0, len(data)), data...)
	}
	return data
}

// piece is a range in its place, and what becomes of it.
type piece struct {
	off, n int64
	data   []byte
}

// serve reads the ranges of the object of h.
func (r *reading) serve(ctx context.Context, h *item) ([]blob.Object, error) {
	pieces, sum := make([]piece, len(r.rs)), int64(0)
	for i, rg := range r.rs {
		off, n, err := rg.Resolve(h.obj.Size)
		if err != nil || n > r.c.opts.MaxGet-sum {
			return nil, errStraight
		}
		pieces[i], sum = piece{off: off, n: n}, sum+n
	}
	if !r.c.allowed(h, &r.o, sum) {
		return nil, errStraight
	}
	isWhole := len(pieces) == 1 && pieces[0].n == h.obj.Size && sum > 0
	if !isWhole && sum > 0 && !h.whole && !r.c.blocky {
		return nil, errStraight
	}
	if isWhole && !h.whole {
		if err := r.whole(ctx, h, &pieces[0]); err != nil {
			return nil, err
		}
	} else if err := r.blocks(ctx, h, pieces); err != nil {
		return nil, err
	}
	objs := make([]blob.Object, len(pieces))
	for i, p := range pieces {
		if r.o.Want.Verify(h.obj.Size, p.off, p.data) != nil {
			// The bytes are not those that the caller's manifest means: what a store has to say about that is no business of a copy.
			r.c.invalidate(r.key)
			return nil, errStraight
		}
		objs[i] = blob.Object{Info: h.obj.Info, Offset: p.off, Data: p.data}
	}
	return objs, nil
}

// whole reads an object of known size that is not in memory as a whole.
func (r *reading) whole(ctx context.Context, h *item, p *piece) error {
	if p.n > r.c.opts.MaxFill {
		return errStraight
	}
	if r.mostlyHere(h) {
		return r.complete(ctx, h, p)
	}
	if p.n > r.c.opts.FillBytes {
		return errStraight
	}
	obj, err := r.fetch(ctx, request{If: r.o.If, Want: r.o.Want}, p.n, func() bool {
		now := r.c.memory.peek(r.key)
		return now != nil && now != h && now.whole
	})
	if err != nil {
		return err
	}
	objs, ok := r.cut(obj)
	if !ok || !same(h, obj.Info) {
		return errAgain // of another version, and that is in the cache now
	}
	p.data = objs[0].Data
	return nil
}

// requestWorth is how many bytes a request is worth: what a store sends while a request waits for its first byte, 10 ms at 100 MB/s.
const requestWorth = 1 << 20

// longestRun returns how many blocks are fetched by one request at most.
func (c *Cache) longestRun() int64 {
	return max(1, min(maxRun, c.opts.MaxFill, c.opts.MaxGet)/c.opts.Block)
}

// mostlyHere reports whether the tiers have so much of the object of h that the rest is better fetched by itself, which may take more requests
// than the one for all of it.
func (r *reading) mostlyHere(h *item) bool {
	c := r.c
	b, size := c.opts.Block, h.obj.Size
	if c.disk != nil && c.disk.Has(r.key, h.obj.Version, 0, size) {
		return true
	}
	if !c.blocky || c.disk == nil && h.blocks.Load() == nil {
		return false
	}
	longest := c.longestRun()
	here, requests, run := int64(0), int64(0), int64(0)
	for k := range (size + b - 1) / b {
		if c.memory.at(h, k) != nil || c.disk != nil && c.disk.Has(r.key, h.obj.Version, k*b, c.length(h, k)) {
			here, run = here+c.length(h, k), 0
			continue
		}
		if run%longest == 0 {
			requests++
		}
		run++
	}
	return here > 0 && here >= (requests-1)*requestWorth
}

// complete reads the whole of an object that the tiers have blocks of. In memory it is one piece from then on, if it has a buffer of its own.
func (r *reading) complete(ctx context.Context, h *item, p *piece) error {
	c, one := r.c, []piece{*p}
	var cargo freight
	w := c.epochs.watch(r.key) // before the blocks are looked for: any of them may be dropped while the others are on their way
	defer w.end(func() {       // deferred: the store may panic
		if cargo.obj.Key != "" {
			c.readmit(h, cargo)
		}
	})
	err := r.blocks(ctx, h, one)
	p.data = one[0].data
	if err == nil && int64(len(r.o.Dst)) < p.n {
		cargo = c.unload(blob.Object{Info: h.obj.Info, Data: p.data})
	}
	return err
}

// blocks reads pieces from the tiers, and fetches the blocks that are missing, neighbours by one request.
func (r *reading) blocks(ctx context.Context, h *item, pieces []piece) error {
	b := r.c.opts.Block
	var found map[int64][]byte // blocks that some piece needs; nil: missing
	var lacking []*piece
	for i := range pieces {
		p := &pieces[i]
		if data, ok := r.c.remembered(h, p.off, p.n); ok {
			p.data = into(r.o.Dst, data)
			continue
		}
		if found == nil { // a hit needs none
			found = make(map[int64][]byte)
		}
		lacks := false
		for k := p.off / b; k*b < p.off+p.n; k++ {
			if _, ok := found[k]; !ok {
				found[k] = r.c.memory.at(h, k)
			}
			lacks = lacks || found[k] == nil
		}
		if lacks {
			lacking = append(lacking, p)
		}
	}
	if r.hopeless(h, found) {
		return errStraight
	}
	r.fromDisk(h, lacking, found)
	var missing []int64
	for _, p := range lacking {
		for k := p.off / b; p.data == nil && k*b < p.off+p.n; k++ {
			if found[k] == nil {
				missing = append(missing, k)
			}
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if err := r.fetchBlocks(ctx, h, missing, found); err != nil {
		return err
	}
	for i := range pieces {
		if p := &pieces[i]; p.data == nil {
			p.data = r.assemble(p, found)
		}
	}
	return nil
}

// tooMany reports whether so many blocks are more than one read may fetch.
func (c *Cache) tooMany(blocks int) bool {
	b := c.opts.Block
	return int64(blocks)*b > min(c.opts.MaxFill+b, c.opts.FillBytes)
}

// hopeless reports whether too much of found is neither in memory nor on disk, from where the rest would be read in vain.
func (r *reading) hopeless(h *item, found map[int64][]byte) bool {
	c := r.c
	if c.disk == nil || !c.tooMany(len(found)) {
		return false
	}
	missing := 0
	for k, data := range found {
		if data == nil && !c.disk.Has(r.key, h.obj.Version, k*c.opts.Block, c.length(h, k)) {
			missing++
		}
	}
	return c.tooMany(missing)
}

// assemble puts p together from the blocks it touches.
func (r *reading) assemble(p *piece, found map[int64][]byte) []byte {
	b := r.c.opts.Block
	if k := p.off / b; (p.off+p.n-1)/b == k {
		return into(r.o.Dst, found[k][p.off-k*b:][:p.n:p.n])
	}
	dst := r.o.Dst
	if int64(len(dst)) < p.n {
		dst = make([]byte, p.n)
	}
	dst = dst[:p.n:p.n]
	for done := int64(0); done < p.n; {
		k := (p.off + done) / b
		done += int64(copy(dst[done:], found[k][p.off+done-k*b:]))
	}
	return dst
}

// fetchBlocks fetches the blocks named in missing, in ascending order, and puts them into found. All requests are under way at once, each
// for blocks beside each other, and pinned to the version of h.
func (r *reading) fetchBlocks(ctx context.Context, h *item, missing []int64, found map[int64][]byte) error {
	b := r.c.opts.Block
	if r.c.tooMany(len(missing)) {
		return errStraight
	}
	longest := r.c.longestRun()
	var flights []*flight
	var runs [][]int64
	defer func() {
		for _, f := range flights {
			f.leave()
		}
	}()
	for len(missing) > 0 {
		n := 1
		for n < len(missing) && missing[n] == missing[0]+int64(n) && int64(n) < longest {
			n++
		}
		run := missing[:n]
		off := run[0] * b
		req := request{Range: blob.Span(off, min(int64(n)*b, h.obj.Size-off)), If: blob.IfVersion(h.obj.Version), Want: r.o.Want, Size: h.obj.Size}
		f, err := r.c.join(ctx, r.key, req, int64(n)*b, func() bool { return r.landed(h, run) })
		if errors.Is(err, errAgain) && r.recall(h, run, found) {
			missing = missing[n:]
			continue
		}
		if err != nil {
			return err
		}
		flights, runs, missing = append(flights, f), append(runs, run), missing[n:]
	}
	for i, f := range flights {
		obj, err := r.result(ctx, f)
		if err != nil {
			return err
		}
		for _, k := range runs[i] {
			data := obj.Data[k*b-obj.Offset:]
			found[k] = data[:min(b, int64(len(data))):min(b, int64(len(data)))]
			if len(runs[i]) > 1 { // a result that is a part of one block must not keep the whole run
				found[k] = append(make([]byte, 0, len(found[k])), found[k]...)
			}
		}
	}
	return nil
}

// recall puts the blocks of run into found, if they are in memory by now.
func (r *reading) recall(h *item, run []int64, found map[int64][]byte) bool {
	for _, k := range run {
		if found[k] = r.c.memory.at(h, k); found[k] == nil {
			return false
		}
	}
	return true
}

// landed reports whether all blocks of run have come since they were found missing.
func (r *reading) landed(h *item, run []int64) bool {
	now := r.c.memory.peek(r.key)
	if now == nil {
		return false
	}
	if now.whole {
		return now != h
	}
	for _, k := range run {
		if r.c.memory.at(now, k) == nil {
			return false
		}
	}
	return true
}
