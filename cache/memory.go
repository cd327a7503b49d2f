package cache

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/wholeblob/wholeblob/blob"
)

// weightUnit is the number of bytes that one unit of otter's weight stands for. Its weights have 32 bits, which would end at 4 GiB.
const weightUnit = 64

// entryOverhead is what an entry costs beside its bytes: otter's node and its place in the table, and the item. It is rounded up from
// the live heap of tiers full of empty entries, 260 to 280 bytes for each.
const entryOverhead = 320

// slot is a key of the memory tier: a hash, since otter is fastest with integers. An object has that of its name, a block one of its head and its
// number. Two that have the same displace each other, and who finds an item looks at whose it is.
type slot uint64

// item is a value of the memory tier: what is known of an object, or a block of one. It does not change once it is in the tier, but for its atomics.
//
// INVARIANT: of is set for blocks alone. Blocks hang on the item of their object and not on its key, so that one that is replaced or dropped
// takes its blocks with it: nobody finds them any more.
type item struct {
	// obj is the answer to a Get if the object is whole, ready to be copied once: that is a good part of what a hit costs. Otherwise it
	// has no Data; and that of a block has nothing else.
	obj blob.Object

	of    *item // of a block: its object
	index int64 // of a block: its number

	whole    bool         // obj.Data is the whole object
	complete bool         // obj.Info is what a Get of the object returns: Set does not say everything
	seq      uint64       // when the newest request began that told us: an item never yields to an older one. Guarded by the lock of the key's state
	checked  atomic.Int64 // when it was last known to be current, see Cache.now; 0: nobody knows
	id       slot         // the slot of its first block

	blocks atomic.Pointer[blockSet] // of what hangs on it; nil: nothing
	gone   atomic.Bool              // of a whole object: it has left the tier, or is about to
}

// blockSet are the numbers of the blocks that an object has in the tier. Dropping the object costs what is kept of it, which may be very little
// of a very large object. It may miss a block that is added while it is evicted: that one takes room until it is evicted again.
type blockSet struct {
	mu   sync.Mutex // held for nothing else, and while otter's locks are held: nobody calls otter under it
	kept map[int64]struct{}
}

func (s *blockSet) add(i int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		s.kept[i] = struct{}{}
	}
}

func (s *blockSet) remove(i int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, i)
}

// take returns the numbers, and ends the set.
func (s *blockSet) take() map[int64]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept
	s.kept = nil
	return kept
}

// memory is the tier in memory: W-TinyLFU, by bytes.
type memory struct {
	cache   *otter.Cache[slot, *item]
	seed    maphash.Seed
	largest int64 // bytes of data of the largest entry
	limit   int64 // of weight
	front   *front
	weight  atomic.Int64 // of what is in cache, and of what is on its way there
	evicted atomic.Int64

	// Heads that otter evicted, whose blocks are out of reach. Its handler may not call the cache, so the next
	// one who adds something removes them.
	orphans struct {
		sync.Mutex
		heads []*item
		some  atomic.Bool
	}
}

func newMemory(o Options) (*memory, error) {
	m := &memory{largest: o.Memory / 8, limit: o.Memory / weightUnit, seed: maphash.MakeSeed()}
	if o.Memory < 8*weightUnit {
		return m, nil // no tier: every lookup misses
	}
	m.front = new(front)
	var err error
	m.cache, err = otter.New(&otter.Options[slot, *item]{
		MaximumWeight:    uint64(m.limit),
		Weigher:          weigh,
		OnAtomicDeletion: m.deleted,
	})
	return m, err
}

// weigh never returns 0: otter does not evict what weighs nothing.
func weigh(_ slot, it *item) uint32 {
	info := &it.obj.Info
	n := int64(entryOverhead) + footprint(len(it.obj.Data)) + int64(len(info.Key)+len(info.Version)+len(info.ContentType))
	for k, v := range info.Metadata {
		n += int64(len(k)+len(v)) + 64
	}
	return uint32(min((n+weightUnit-1)/weightUnit, 1<<32-1))
}

// footprint is what n bytes take in Go's heap: size classes waste at most an eighth, and above 32 KiB whole pages of 8 KiB are used.
func footprint(n int) int64 {
	const page = 8 << 10
	if n > 32<<10 {
		return (int64(n) + page - 1) / page * page
	}
	return int64(n) + int64(n)/16
}

// insert puts it into otter, and makes room. Otter alone would return first: a few writers, of large items, could leave
// many times the capacity to a goroutine that has yet to run.
//
// INVARIANT: what weight is above limit is in the hands of callers of insert. Otter's policy knows of an item once Set has returned, so who finds too much
// there either has it evicted, or it belongs to another one who has yet to look.
func (m *memory) insert(s slot, it *item) (old *item, added bool) {
	m.weight.Add(int64(weigh(s, it)))
	old, added = m.cache.Set(s, it)
	if m.weight.Load() > m.limit {
		m.cache.CleanUp()
	}
	return old, added
}

// deleted is called under a lock of otter's, before anyone can miss the item there.
func (m *memory) deleted(e otter.DeletionEvent[slot, *item]) {
	m.weight.Add(-int64(weigh(e.Key, e.Value)))
	if e.Value.whole {
		m.front.leave(e.Key, e.Value)
	}
	if !e.WasEvicted() {
		return
	}
	m.evicted.Add(1)
	if h := e.Value.of; h != nil {
		if s := h.blocks.Load(); s != nil {
			s.remove(e.Value.index)
		}
		return
	}
	if e.Value.blocks.Load() == nil {
		return
	}
	m.orphans.Lock()
	defer m.orphans.Unlock()
	m.orphans.heads = append(m.orphans.heads, e.Value)
	m.orphans.some.Store(true)
}

// named returns the slot of an object.
func (m *memory) named(key string) slot { return slot(maphash.String(m.seed, key)) }

// slot returns the slot of block i of h.
func (h *item) slot(i int64) slot { return h.id + slot(i)*0x9E3779B97F4A7C15 }

// head returns the item of key's head, nil if there is none.
func (m *memory) head(key string) *item {
	if m.cache == nil {
		return nil
	}
	return m.find(m.named(key), key)
}

func (m *memory) find(s slot, key string) *item {
	it, ok := m.cache.GetIfPresent(s)
	if !ok || it.obj.Key != key {
		return nil
	}
	return it
}

// peek is head without counting as a use.
func (m *memory) peek(key string) *item {
	if m.cache == nil {
		return nil
	}
	e, ok := m.cache.GetEntryQuietly(m.named(key))
	if !ok || e.Value.obj.Key != key {
		return nil
	}
	return e.Value
}

// at returns block i of the object whose head is h, nil if it is not there.
func (m *memory) at(h *item, i int64) []byte {
	if m.cache == nil || h.blocks.Load() == nil {
		return nil
	}
	it, ok := m.cache.GetIfPresent(h.slot(i))
	if !ok || it.of != h || it.index != i {
		return nil
	}
	return it.obj.Data
}

// put makes h the head of key.
func (m *memory) put(key string, h *item) {
	if m.cache == nil {
		return
	}
	if old, added := m.insert(m.named(key), h); !added && old != h {
		m.unblock(old)
	}
	m.adopt()
}

// add hangs block i, the bytes of data, on h.
func (m *memory) add(h *item, i int64, data []byte) {
	if m.cache == nil || int64(len(data)) > m.largest {
		return
	}
	h.keeps(i)
	m.insert(h.slot(i), &item{obj: blob.Object{Data: data}, of: h, index: i})
	m.adopt()
}

// keeps notes that block i is about to hang on h.
func (h *item) keeps(i int64) {
	s := h.blocks.Load()
	if s == nil {
		h.blocks.CompareAndSwap(nil, &blockSet{kept: make(map[int64]struct{})})
		if s = h.blocks.Load(); s == nil {
			return // dropped at once
		}
	}
	s.add(i)
}

// drop removes key's head and with it all blocks.
func (m *memory) drop(key string) {
	if m.cache == nil {
		return
	}
	if old, ok := m.cache.Invalidate(m.named(key)); ok {
		m.unblock(old)
	}
}

// unblock removes the blocks of a head that is out of reach, which otherwise take room until they are evicted.
func (m *memory) unblock(h *item) {
	s := h.blocks.Swap(nil)
	if s == nil {
		return
	}
	for i := range s.take() {
		m.cache.Invalidate(h.slot(i))
	}
}

// adopt removes the blocks of heads that were evicted.
func (m *memory) adopt() {
	if !m.orphans.some.Load() {
		return
	}
	m.orphans.Lock()
	heads := m.orphans.heads
	m.orphans.heads = nil
	m.orphans.some.Store(false)
	m.orphans.Unlock()
	for _, h := range heads {
		m.unblock(h)
	}
}

// clear forgets everything. What was handed out stays valid: it belongs to the garbage collector.
func (m *memory) clear() {
	if m.cache != nil {
		m.cache.InvalidateAll()
	}
}

// bytes returns how much of the capacity is used.
func (m *memory) bytes() int64 {
	return m.weight.Load() * weightUnit
}

// newHead returns an item for an object without its bytes, known to be current at that time.
func newHead(info blob.Info, seq uint64, checked int64) *item {
	h := &item{obj: blob.Object{Info: info}, complete: true, seq: seq, id: slot(rand.Uint64())}
	h.checked.Store(checked)
	return h
}
