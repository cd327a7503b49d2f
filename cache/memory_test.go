package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

func liveHeap() int64 {
	for range 3 { // otter evicts in the background, and what it held dies with the next cycle
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
