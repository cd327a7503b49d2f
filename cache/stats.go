package cache

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Stats are the counters of a Cache since it was made. They are read one by one while calls go on.
type Stats struct {
	MemoryHits     int64 // reads answered from memory alone
	MemoryHitBytes int64 // their bytes
	DiskHits       int64 // reads answered without the store, in part or wholly from disk
	DiskHitBytes   int64 // their bytes
	Misses         int64 // reads for which something had to be fetched
	Bypassed       int64 // reads that went straight to the store: SkipCache, Off, too large, refused, or beside a write of the key

	Fetches       int64 // requests to the inner store that fill the cache, or ask it what is current
	Joined        int64 // reads that waited for a fetch which another had begun
	FillsDropped  int64 // fetches whose result was not kept since the key was written meanwhile
	FillsSkipped  int64 // fetches not begun, and fetches and Sets not kept, since FillBytes was used up
	WriteThroughs int64 // objects kept from Set
	Evictions     int64 // entries that left memory to make room
	MemoryBytes   int64 // capacity of memory in use
	Disk          DiskStats
}

// DiskStats count what the disk tier did since it was opened, and say how it is. They are the tier's own, written out here since documentation
// shows nothing of an internal type.
type DiskStats struct {
	Hits    int64 // reads answered
	Misses  int64 // reads not answered, for whatever reason
	Bytes   int64 // of disk taken by entries, headers and file-system blocks counted
	Entries int64 // files

	Reads     int64 // system calls that read of entries, headers left out
	ReadBytes int64 // their bytes: what was asked for, what lay around it in checksum blocks and between ranges, and blocks read for memory

	Fills        int64 // entries written
	SkippedFills int64 // entries not written: queue full, tier off or full, too large, or no longer wanted when their turn came
	Evictions    int64 // entries removed to make room
	QueuedBytes  int64 // waiting to be written

	Damaged  int64 // entries dropped because they were not what they should be, or could not be read
	Foreign  int64 // names in the tier's directories that are not the tier's; they are left alone
	Junk     int64 // temporary files of crashed processes removed
	Faults   int64 // operations of the file system that failed and should not
	TimesOff int64 // how often the tier turned itself off
	Resets   int64 // how often it gave up all entries because it could no longer vouch for them

	Off     bool // nothing is written until the next probe finds the disk well
	Indexed bool // the entries of earlier processes have all been found
}

// counters are the counts of a Cache. Hits in memory are frequent enough for their counter to be what slows them down.
type counters struct {
	memory [1 << stripeBits]stripe

	diskHits, diskBytes, misses, bypassed            atomic.Int64
	fetches, joined, dropped, skipped, writesThrough atomic.Int64
}

// stripe has a cache line for itself. A hit is one atomic addition: recent holds a number of hits and, in its low bits, their bytes.
type stripe struct {
	recent atomic.Uint64

	mu          sync.Mutex
	hits, bytes int64 // but for those in recent
	_           [32]byte
}

// stripeBits makes two goroutines that run at once, of which there are few, seldom share a stripe: that doubles what a hit costs. Neighbouring stacks have
// different stripes, whatever the power of two between them.
const stripeBits = 5

// Beyond these recent is emptied into the sums, long before either part of it is full: the concurrent hits that would be needed
// for that are more than there is memory for.
const (
	hitShift    = 40
	recentHits  = 1 << 20
	recentBytes = 1 << 39
	largestHit  = 1 << 24
)

// hit counts a hit of n bytes, and picks one in usesNoted. They are spread so that a program which reads the same keys in turn
// has each of them picked at times.
func (c *counters) hit(n int) (picked bool) {
	// Goroutines differ in their stacks, and that is cheaper to ask than anything else in which they differ.
	var here byte
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> 11 //nolint:gosec // a number to choose by: nothing is read through it
	s := &c.memory[stack*0x9E3779B97F4A7C15>>(64-stripeBits)]
	if n > largestHit {
		s.add(1, int64(n))
		return true
	}
	v := s.recent.Add(1<<hitShift | uint64(n))
	if v >= recentHits<<hitShift || v%(1<<hitShift) >= recentBytes {
		s.add(0, 0)
	}
	// The low bits of a count would pick the same keys in each turn; so would a single multiplication, nearly, for some numbers of keys.
	mix := (v >> hitShift) * 0x9E3779B97F4A7C15
	mix = (mix ^ mix>>32) * 0x9E3779B97F4A7C15
	return mix < math.MaxUint64/usesNoted
}

// add adds to the sums, and what is recent too.
func (s *stripe) add(hits, bytes int64) (sumHits, sumBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.recent.Swap(0)
	s.hits += hits + int64(v>>hitShift)
	s.bytes += bytes + int64(v%(1<<hitShift))
	return s.hits, s.bytes
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	s := Stats{
		DiskHits:      c.count.diskHits.Load(),
		DiskHitBytes:  c.count.diskBytes.Load(),
		Misses:        c.count.misses.Load(),
		Bypassed:      c.count.bypassed.Load(),
		Fetches:       c.count.fetches.Load(),
		Joined:        c.count.joined.Load(),
		FillsDropped:  c.count.dropped.Load(),
		FillsSkipped:  c.count.skipped.Load(),
		WriteThroughs: c.count.writesThrough.Load(),
		Evictions:     c.memory.evicted.Load(),
		MemoryBytes:   c.memory.bytes(),
	}
	for i := range c.count.memory {
		hits, bytes := c.count.memory[i].add(0, 0)
		s.MemoryHits += hits
		s.MemoryHitBytes += bytes
	}
	if c.disk != nil {
		s.Disk = DiskStats(c.disk.Stats())
	}
	return s
}

// allowance is a number of bytes that may be in use at a time.
type allowance struct {
	free atomic.Int64
}

// take takes n bytes if they are free.
func (a *allowance) take(n int64) bool {
	for {
		free := a.free.Load()
		if free < n {
			return false // without ever taking what others could have
		}
		if a.free.CompareAndSwap(free, free-n) {
			return true
		}
	}
}

func (a *allowance) give(n int64) { a.free.Add(n) }
