package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func liveHeap() int64 {
	for range 3 { // what finalizers and pools hold dies with a later cycle
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Blocks are kept one by one: a run of which one block is left must not stay in memory as a whole.
func TestLiveHeapIsTheCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("reads gigabytes")
	}
	const capacity, size, objects = 256 << 20, 4 << 20, 200
	inner := memblob.New(nil)
	content := make([]byte, size)
	for i := range objects {
		if _, err := inner.Set(t.Context(), fmt.Sprint(i), blob.Bytes(content), nil); err != nil {
			t.Fatal(err)
		}
	}
	before := liveHeap()
	c := over(t, inner, Options{Memory: capacity})
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 8000 {
		n := int64(4 << 10)
		if i%8 == 0 {
			n = 1 << 20 // runs of several blocks
		}
		r := blob.Span(rnd.Int64N(size-n), n)
		if _, err := c.Get(t.Context(), fmt.Sprint(rnd.IntN(objects)), &blob.GetOptions{Range: r}); err != nil {
			t.Fatal(err)
		}
	}
	used := liveHeap() - before
	t.Logf("%.2f of the capacity, %+v", float64(used)/capacity, c.Stats())
	if used > capacity*12/10 || used < capacity*7/10 {
		t.Errorf("the live heap is %d bytes, %.2f of the capacity", used, float64(used)/capacity)
	}
	mustClose(t, c)
	runtime.KeepAlive(inner)
}

// What is known of objects takes room as their bytes do.
func TestHeapIsBoundedForObjectsWithoutBytes(t *testing.T) {
	const capacity = 8 << 20
	inner := memblob.New(nil)
	before := liveHeap()
	c := over(t, inner, Options{Memory: capacity})
	for i := range 100_000 {
		k := fmt.Sprintf("key-%07d", i)
		set(t, c, k, "")
		if err := inner.Delete(t.Context(), k, nil); err != nil { // behind its back, to keep the inner store empty
			t.Fatal(err)
		}
	}
	used := liveHeap() - before
	t.Logf("%.2f of the capacity", float64(used)/capacity)
	if used > capacity*13/10 {
		t.Errorf("the live heap is %d bytes, %.2f of the capacity", used, float64(used)/capacity)
	}
	runtime.KeepAlive(inner)
	mustClose(t, c)
}

func TestReplacedHeadsTakeTheirBlocksAlong(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{Block: block})
	defer mustClose(t, c)
	content := pattern(50 * block)
	for range 100 {
		set(t, inner, key, content)
		wantRange(t, c, blob.Span(0, 40*block), content)
		c.invalidate(key)
	}
	c.memory.cache.CleanUp()
	if n := c.memory.bytes(); n != 0 {
		t.Errorf("%d bytes are in use by what nobody can reach", n)
	}
}

// Slots are hashes: what lies in one is another's if two hashes are the same.
func TestItemsInTheSlotOfAnotherAreNotFound(t *testing.T) {
	c := over(t, memblob.New(nil), Options{Block: block})
	defer mustClose(t, c)
	m := c.memory
	other := newHead(blob.Info{Key: "other", Version: "1", Size: 10 * block}, 1, 0)
	m.cache.Set(m.named(key), other)
	if m.head(key) != nil || m.peek(key) != nil {
		t.Error("found the item of another key")
	}
	h := newHead(blob.Info{Key: key, Version: "1", Size: 10 * block}, 2, 0)
	m.put(key, h)
	if m.head(key) != h || m.peek(key) != h {
		t.Error("did not displace it")
	}
	h.keeps(3)
	for _, it := range []*item{
		{obj: blob.Object{Data: []byte("x")}, of: other, index: 3},
		{obj: blob.Object{Data: []byte("x")}, of: h, index: 4},
		other,
	} {
		m.cache.Set(h.slot(3), it)
		if m.at(h, 3) != nil {
			t.Errorf("found the block of another: %+v", it)
		}
	}
	m.add(h, 3, []byte("mine"))
	if string(m.at(h, 3)) != "mine" {
		t.Error("did not displace it")
	}
	m.cache.Set(m.named(key), &item{obj: blob.Object{Data: []byte("x")}, of: other})
	if m.head(key) != nil || m.peek(key) != nil {
		t.Error("took a block for an object")
	}
}

// Sums of hits are exact, whenever they are moved on.
func TestHitsAreCountedExactly(t *testing.T) {
	var c counters
	sizes := []int{0, 1, 4 << 10, largestHit, largestHit + 1, 1 << 40}
	const each = 100_000
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range each {
				c.hit(sizes[i%len(sizes)])
			}
		})
	}
	wg.Wait()
	var hits, bytes, want int64
	for i := range c.memory {
		h, b := c.memory[i].add(0, 0)
		hits, bytes = hits+h, bytes+b
	}
	for i := range each {
		want += 4 * int64(sizes[i%len(sizes)])
	}
	if hits != 4*each || bytes != want {
		t.Errorf("%d hits of %d bytes, want %d of %d", hits, bytes, 4*each, want)
	}
	// Both parts of the word are emptied long before they are full.
	for _, full := range []uint64{(recentHits - 1) << hitShift, recentBytes - 1} {
		for i := range c.memory {
			c.memory[i].recent.Store(full)
		}
		c.hit(1)
		emptied := 0
		for i := range c.memory {
			if c.memory[i].recent.Load() == 0 {
				emptied++
			}
		}
		if emptied != 1 {
			t.Errorf("one hit more than %x emptied %d counters", full, emptied)
		}
	}
}

// What is above an eighth of the capacity does not go into memory: neither an object, read or written, nor a run of blocks.
func TestMemoryTakesNothingAboveAnEighth(t *testing.T) {
	inner := memblob.New(nil)
	set(t, inner, "whole", pattern(8*block+1))
	set(t, inner, "run", pattern(100*block))
	c := over(t, inner, Options{Memory: 64 * block, Block: block, Dir: t.TempDir(), Disk: 64 << 20})
	defer mustClose(t, c)
	if _, err := c.Get(t.Context(), "whole", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "run", &blob.GetOptions{Range: blob.Span(0, 9*block)}); err != nil {
		t.Fatal(err)
	}
	set(t, c, "written", pattern(8*block+1)) // which the disk takes
	for _, k := range []string{"whole", "run", "written"} {
		if h := c.memory.peek(k); h == nil || h.whole || h.blocks.Load() != nil {
			t.Errorf("%s: kept %+v", k, h)
		}
	}
	if _, err := c.Get(t.Context(), "run", &blob.GetOptions{Range: blob.Span(20*block, 8*block)}); err != nil {
		t.Fatal(err)
	}
	if h := c.memory.peek("run"); h.blocks.Load() == nil {
		t.Error("a run of an eighth was not kept")
	}
}

// What is above MaxFill is kept nowhere, whether it was read or written.
func TestNothingAboveMaxFillIsKept(t *testing.T) {
	h := newHooked()
	c := over(t, h, Options{Block: block, MaxFill: 2 * block, Disk: 64 << 20})
	defer mustClose(t, c)
	for k, n := range map[string]int{"small": 2 * block, "large": 2*block + 1} {
		set(t, c, k, pattern(n))
		before := h.count(blob.OpGet)
		for range 2 {
			wantGet(t, c, k, pattern(n))
		}
		if asked := h.count(blob.OpGet) - before; (asked > 0) != (k == "large") {
			t.Errorf("%s: %d requests for two reads after a Set", k, asked)
		}
	}
	written(t, c.disk)
	if s := c.Stats(); s.WriteThroughs != 1 || s.Disk.Entries != 1 {
		t.Errorf("%+v", s)
	}
}
