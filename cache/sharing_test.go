package cache

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// What was the caller's before a Set, and is the caller's in Dst after a Get, may be changed at once: also while the disk tier has not written yet what
// it was given. Bytes of one request in another are grafana/loki #13162.
func TestWhatCallersDoToTheirSlicesReachesNoTier(t *testing.T) {
	content := tiertest.Bytes(1, 40_000)
	var armed atomic.Bool
	goOn := make(chan struct{})
	inner := memblob.New(nil)
	c := over(t, inner, Options{Memory: -1, Block: block, Dir: t.TempDir(), Disk: 8 << 20})
	reopen(t, c, t.TempDir(), diskcache.Options{Size: 8 << 20, Fault: func(op, _ string) error {
		if op == "write" && armed.Load() {
			<-goOn
		}
		return nil
	}})
	d := c.disk
	defer mustClose(t, c)
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	armed.Store(true)
	for i := range 8 { // for both writers
		mine := bytes.Clone(content)
		if _, err := c.Set(t.Context(), fmt.Sprint("set", i), blob.Bytes(mine), nil); err != nil {
			t.Fatal(err)
		}
		clear(mine)
		k := fmt.Sprint("get", i)
		set(t, inner, k, string(content))
		if _, err := c.Get(t.Context(), k, &blob.GetOptions{Dst: mine}); err != nil || !bytes.Equal(mine, content) {
			t.Fatal(err)
		}
		clear(mine)
	}
	release()
	written(t, d)
	for i := range 8 {
		for _, k := range []string{fmt.Sprint("set", i), fmt.Sprint("get", i)} {
			dst := make([]byte, len(content))
			if info, ok := d.Lookup(k); !ok || !d.Read(k, info.Version, 0, dst) || !bytes.Equal(dst, content) {
				t.Errorf("%s on disk: found %v, or other bytes", k, ok)
			}
		}
	}
}

// Small tiers, in which every read evicts what others hold, and every write replaces it.
func TestEvictionsChangeNothingThatIsBeingRead(t *testing.T) {
	inner := memblob.New(nil)
	c := over(t, inner, Options{Memory: 256 << 10, Block: block, Dir: t.TempDir(), Disk: 256 << 10, NoWriteThrough: true})
	defer mustClose(t, c)
	contents := make([][]byte, 40) // three times what either tier holds
	for i := range contents {
		contents[i] = tiertest.Bytes(uint64(i), 5*block+i)
		set(t, inner, fmt.Sprint(i), string(contents[i]))
	}
	for evicted := false; !evicted && t.Context().Err() == nil; { // at once, unless the disk is slow
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() { readAndKeep(t, c, contents, g) })
		}
		wg.Wait()
		written(t, c.disk)
		c.memory.cache.CleanUp()
		s := c.Stats()
		evicted = s.Evictions > 0 && s.Disk.Evictions > 0 && s.DiskHits > 0
	}
}

// readAndKeep reads all contents in many ways, and looks at what it got when it has read everything.
func readAndKeep(t *testing.T, c *Cache, contents [][]byte, from int) {
	var kept []blob.Object
	for n := range 300 {
		var o blob.GetOptions
		if n%3 != 0 {
			o.Range = blob.Span(int64(n*37%(4*block)), int64(100+n*11%block))
		}
		if n%5 == 0 {
			o.Dst = bytes.Repeat([]byte{0xDB}, 6*block)
		}
		obj, err := c.Get(t.Context(), fmt.Sprint((n*7+from)%len(contents)), &o)
		if err != nil {
			t.Error(err)
			return
		}
		kept = append(kept, obj)
	}
	for n, o := range kept {
		if !bytes.Equal(o.Data, contents[(n*7+from)%len(contents)][o.Offset:][:len(o.Data)]) {
			t.Errorf("read %d: what was handed out has changed, or was never right", n)
		}
	}
}

// One large read, and then many small ones: nothing stays of the large one's buffers.
func TestMemoryFallsBackToItsBoundAfterALargeRead(t *testing.T) {
	const capacity = 4 << 20
	inner := memblob.New(nil)
	set(t, inner, "large", string(make([]byte, 64<<20)))
	for i := range 1000 {
		set(t, inner, fmt.Sprint(i), string(tiertest.Bytes(uint64(i), 4<<10)))
	}
	before := liveHeap()
	c := over(t, inner, Options{Memory: capacity, MaxFill: 64 << 20, FillBytes: 128 << 20, Dir: t.TempDir(), Disk: 256 << 20})
	for _, o := range []blob.GetOptions{{}, {Range: blob.Span(1<<20, 32<<20)}} {
		if _, err := c.Get(t.Context(), "large", &o); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		if v := get(t, c, fmt.Sprint(i)); len(v) != 4<<10 {
			t.Fatal(len(v))
		}
	}
	written(t, c.disk)
	used := liveHeap() - before
	t.Logf("%d bytes", used)
	if used > capacity*12/10+2<<20 { // the disk tier has an index, open files and one root for each shard
		t.Errorf("the live heap has grown by %d bytes, the capacity is %d", used, capacity)
	}
	mustClose(t, c)
	runtime.KeepAlive(inner)
}

// A store may answer with a small part of a large buffer: the tier has a copy then, or it would keep what it does not count.
func TestMemoryKeepsNoMoreThanItCounts(t *testing.T) {
	for name, o := range map[string]*blob.GetOptions{"whole": nil, "block": {Range: blob.Span(block, block)}} {
		buffer := make([]byte, 64*block)
		store := &bent{Blob: memblob.New(nil), bend: func(_ *bent, _ blob.Range, o *blob.Object) { o.Data = buffer[:copy(buffer, o.Data)] }}
		set(t, store, key, pattern(3*block))
		c := over(t, store, Options{Block: block})
		if _, err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		h := c.memory.peek(key)
		kept := h.obj.Data
		if o != nil {
			kept = c.memory.at(h, 1)
		}
		if len(kept) == 0 || &kept[0] == &buffer[0] {
			t.Errorf("%s: %d bytes are kept, in the store's buffer of %d", name, len(kept), len(buffer))
		}
		mustClose(t, c)
	}
}

// A small result of a run does not keep the run: what is handed out is a part of one block, or no more than twice what was asked for.
func TestSmallResultDoesNotKeepALargeBuffer(t *testing.T) {
	const size = 64 * block
	inner := memblob.New(nil)
	content := pattern(size)
	set(t, inner, key, content)
	store := &bent{Blob: inner, content: []byte(content)}
	var sent []byte // of the last request
	store.bend = func(_ *bent, _ blob.Range, o *blob.Object) { sent = o.Data }
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	keeps := func(o blob.Object) bool {
		if len(sent) <= block || len(o.Data) > len(sent)/2 {
			return false
		}
		for i := range sent {
			if &sent[i] == &o.Data[0] {
				return true
			}
		}
		return false
	}
	// The first request for the object is as long as the first of the ranges, the others are cut from it.
	objs, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 10*block), blob.Span(7, 9), blob.Span(2*block-4, 8)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range objs[1:] {
		if keeps(o) {
			t.Errorf("the result %d, of %d bytes, keeps %d", i+1, len(o.Data), len(sent))
		}
	}
	// A run of two known blocks, of each of which a little is asked for.
	if objs, err = c.GetRanges(t.Context(), key, []blob.Range{blob.Span(20*block+7, 9), blob.Span(21*block+7, 9)}, nil); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2*block {
		t.Fatalf("%d bytes were sent for two blocks", len(sent))
	}
	for i, o := range objs {
		if keeps(o) {
			t.Errorf("the result %d of a run keeps it", i)
		}
	}
}
