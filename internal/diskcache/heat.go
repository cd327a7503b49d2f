package diskcache

import "sync"

// callCost is what a read from disk costs beside its bytes, in bytes: in the page cache it is about 8 KiB, on flash some 100 KiB.
const callCost = 32 << 10

// maxHeat is the most blocks that are watched at a time.
const maxHeat = 64 << 10

// heatMap says which blocks are worth reading whole, for memory, when only parts of them are asked for.
//
// Reading a block of 256 KiB for each 4 KiB that are asked for would multiply what a scan reads by 64, and reading the 4 KiB alone would read what is hot
// from disk for ever. So it is rented until the rent has cost as much as the block, and bought then: together at most twice what the better of
// the two would have cost. A block of 256 KiB is bought at the eighth read of 4 KiB, the fourth of 32 KiB, the second of 128 KiB or more; none at
// the first, so what is read once is read as it is.
//
// The count is forgotten once as many other blocks have been read as memory could hold: what comes back more seldom would not stay there. It begins
// anew when a block is bought, so one that memory turns down is not bought again at each read.
type heatMap struct {
	mu       sync.Mutex
	now, old map[heatKey]int64 // rent paid, in bytes; now takes over from old when it is full
}

type heatKey struct {
	object keyHash
	block  int64
}

// touch counts a read of n bytes of a block of that many bytes, and reports whether it is to be read whole. window is the number of blocks
// that memory holds.
func (t *heatMap) touch(k heatKey, n, block, window int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	paid, known := t.now[k]
	if !known {
		paid = t.old[k]
	}
	if paid += min(n+callCost, (block+1)/2); paid >= block {
		delete(t.now, k)
		delete(t.old, k)
		return true
	}
	if t.now == nil || !known && int64(len(t.now)) >= min(max(window, 1), maxHeat) {
		t.old, t.now = t.now, make(map[heatKey]int64)
	}
	t.now[k] = paid
	return false
}

// Hot counts a read of n bytes of block number k of key, which has size bytes, and reports whether it is better read whole, to be kept in memory, which
// holds that many blocks.
func (d *Tier) Hot(key string, k, n, size, memory int64) bool {
	return d.heat.touch(heatKey{hashKey(key), k}, n, size, memory)
}
