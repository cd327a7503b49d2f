package diskcache

import (
	"sync"
	"time"

	"github.com/wholeblob/wholeblob/blob"
)

// item is an entry on its way to disk.
type item struct {
	g     *generation
	hash  keyHash
	ver   uint64
	info  blob.Info
	off   int64
	data  []byte
	foot  int64
	cost  int64 // bytes of the queue
	done  chan struct{}
	queue int

	// Guarded by the shard's lock.
	cancelled  bool // not to be published
	publishing bool // past the point where it can be cancelled: done is closed when the index shows it
}

func (it *item) end() int64 { return it.off + int64(len(it.data)) }

// writeQueue holds what waits to be written, bounded in bytes. All entries of a key go to the same writer, so that no two
// are published at the same time.
type writeQueue struct {
	mu        sync.Mutex
	more      sync.Cond
	items     [writers][]*item
	limit     int64
	bytes     int64 // of data, waiting or being written
	foot      int64 // of disk that they will take
	closed    bool
	abandoned bool
}

func (q *writeQueue) init(limit int64) { q.limit, q.more.L = limit, &q.mu }

func (q *writeQueue) add(it *item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+it.cost > q.limit {
		return false
	}
	q.bytes += it.cost
	q.foot += it.foot
	q.items[it.queue] = append(q.items[it.queue], it)
	q.more.Broadcast()
	return true
}

// next waits for an item of queue i; nil: there will be none.
func (q *writeQueue) next(i int) (it *item, abandoned bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items[i]) == 0 {
		if q.closed {
			return nil, q.abandoned
		}
		q.more.Wait()
	}
	it = q.items[i][0]
	q.items[i][0] = nil
	q.items[i] = q.items[i][1:]
	return it, q.abandoned
}

func (q *writeQueue) finished(it *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= it.cost
	q.foot -= it.foot
}

func (q *writeQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}

func (q *writeQueue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned = true
}

func (q *writeQueue) size() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

func (q *writeQueue) reserved() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.foot
}

// Put queues data, the bytes of that version of the object from off on, to be kept. The run begins at a multiple of the checksum
// block and ends at one, or with the object; anything else is refused, as nothing of it can be right. The data must never change
// afterwards. It reports false if the entry is skipped: the tier is off, the queue or the disk full, the entry too large.
//
// It does no input or output. Another version of the object that the tier has gives way.
func (d *Tier) Put(info blob.Info, off int64, data []byte) bool {
	if !d.enqueue(info, off, data) {
		d.n.skipped.Add(1)
		return false
	}
	return true
}

func (d *Tier) enqueue(info blob.Info, off int64, data []byte) bool {
	g := d.gen.Load()
	if g == nil || d.health.off.Load() || info.Key == "" || !validRun(info.Size, off, int64(len(data)), d.o.sumBlock) {
		return false
	}
	// The format's times are of 64 bits. One beyond them, which ends in the year 2262, is not said rather than said wrong.
	if t := info.ModTime; !t.IsZero() && !time.Unix(0, t.UnixNano()).Equal(t) {
		info = blob.Info{Key: info.Key, Version: info.Version, Size: info.Size}
	}
	it := &item{
		g: g, hash: hashKey(info.Key), ver: hashVersion(info.Version), info: info, off: off, data: data,
		foot: footprint(int64(len(data)) + page), cost: int64(len(data)) + minHeader, done: make(chan struct{}),
	}
	it.queue = int(it.hash[1]) % writers
	if it.foot > d.o.Size/2 || it.cost > d.o.queue || !d.room(g, it.foot) {
		return false
	}
	sh := g.shard(it.hash)
	sh.mu.Lock()
	if sh.covered(it) {
		sh.mu.Unlock()
		return true
	}
	if sh.pending == nil {
		sh.pending = map[keyHash][]*item{}
	}
	sh.pending[it.hash] = append(sh.pending[it.hash], it)
	sh.mu.Unlock()
	if !d.queue.add(it) {
		sh.unpend(it)
		return false
	}
	if used, _ := g.sieve.size(); used+d.queue.reserved() > d.o.Size {
		d.poke()
	}
	return true
}

// room reports whether an entry may be queued. Evictions run behind: what is on disk and what is queued may exceed the size by
// no more than the length of the queue; before the index is complete, when nothing is evicted, by nothing.
func (d *Tier) room(g *generation, foot int64) bool {
	used, _ := g.sieve.size()
	limit := d.o.Size
	if g.indexed.Load() {
		limit += min(d.o.queue, d.o.Size/8)
	}
	if used+d.queue.reserved()+foot <= limit {
		return true
	}
	d.poke()
	return false
}

// covered reports whether what it holds is there or on its way already. The shard's lock is held.
func (sh *shard) covered(it *item) bool {
	for _, p := range sh.pending[it.hash] {
		if p != it && !p.cancelled && p.info.Version == it.info.Version && p.off <= it.off && it.end() <= p.end() {
			return true
		}
	}
	return sh.onDisk(it)
}

func (sh *shard) onDisk(it *item) bool {
	o := sh.objects[it.hash]
	return o != nil && o.ver == it.ver && o.covers(it.off, it.end())
}

// unpend takes it out of what is pending and lets go those who wait for it.
func (sh *shard) unpend(it *item) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.unpendLocked(it)
}

func (sh *shard) unpendLocked(it *item) {
	list := sh.pending[it.hash]
	for i, p := range list {
		if p == it {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(sh.pending, it.hash)
	} else {
		sh.pending[it.hash] = list
	}
	close(it.done)
}
