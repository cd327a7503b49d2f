package cache

import "sync/atomic"

// front is a table of whole objects in front of otter, whose look-up is most of what a hit costs. An item has one place, which it shares with
// all others whose slots end in the same bits. It comes there with one hit in usesNoted, so that what is read once displaces nothing; with the
// same hit otter learns that the item is in use, and of the hits in front of it otter learns no more than that.
//
// INVARIANT: what has left otter is not served, and no place keeps it. Otter's handler marks an item before anyone can miss it in otter, hence
// before a drop returns, and then empties its place. Who gives an item its place looks for the mark afterwards: whichever of the two comes second
// sees what the other did, and empties the place. Until then the mark keeps the item from being served.
type front [1 << frontBits]place

const (
	frontBits = 13 // 128 KiB of places. With half as many, hits of 1000 keys are a twentieth slower
	usesNoted = 16 // with 8 hits are a tenth slower, and in traces no more frequent
)

// place says whose it is, since it costs a miss of the processor's cache to see that of an item. It may be out of step with the item, which alone decides.
type place struct {
	slot atomic.Uint64
	item atomic.Pointer[item]
}

func (f *front) place(s slot) *place { return &f[s%slot(len(f))] }

// find returns the item of key's whole object, nil if it has no place.
func (f *front) find(s slot, key string) *item {
	p := f.place(s)
	if slot(p.slot.Load()) != s {
		return nil
	}
	if it := p.item.Load(); it != nil && it.obj.Key == key && !it.gone.Load() {
		return it
	}
	return nil
}

// enter gives it, which was seen in otter, its place.
func (f *front) enter(s slot, it *item) {
	p := f.place(s)
	if p.item.Load() == it {
		return
	}
	p.slot.Store(uint64(s))
	p.item.Store(it)
	if it.gone.Load() {
		p.item.CompareAndSwap(it, nil)
	}
}

// leave takes it from the front for good.
func (f *front) leave(s slot, it *item) {
	it.gone.Store(true)
	f.place(s).item.CompareAndSwap(it, nil)
}

// hot is head for hits that are counted: it is up to used that otter learns of them.
func (m *memory) hot(key string) *item {
	if m.cache == nil {
		return nil
	}
	s := m.named(key)
	if it := m.front.find(s, key); it != nil {
		return it
	}
	return m.find(s, key)
}

// used is called for one in usesNoted of the hits on whole objects.
func (m *memory) used(key string) {
	s := m.named(key)
	if it := m.find(s, key); it != nil && it.whole {
		m.front.enter(s, it)
	}
}
