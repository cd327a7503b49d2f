package cache

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// counted is a cache whose disk tier, of that directory, counts what it asks of the file system.
func counted(t *testing.T, inner blob.Blob, o Options, ops *tiertest.Ops) *Cache {
	t.Helper()
	c := over(t, inner, o)
	reopen(t, c, o.Dir, diskcache.Options{Size: o.Disk, Fault: ops.At})
	return c
}

// filled returns a directory with whole blocks of the content of key, from and to counted in blocks.
func filled(t *testing.T, inner blob.Blob, size int64, spans ...blob.Range) Options {
	t.Helper()
	o := Options{Memory: -1, Dir: t.TempDir(), Disk: 64 << 20, Block: size}
	c := over(t, inner, o)
	for _, r := range spans {
		if _, err := c.Get(t.Context(), key, &blob.GetOptions{Range: r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.shut(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

func wantRanges(t *testing.T, c *Cache, content string, rs ...blob.Range) {
	t.Helper()
	objs, err := c.GetRanges(t.Context(), key, rs, nil)
	if err != nil || len(objs) != len(rs) {
		t.Fatal(len(objs), err)
	}
	for i, o := range objs {
		off, n, _ := rs[i].Resolve(int64(len(content)))
		if string(o.Data) != content[off:off+n] || o.Offset != off {
			t.Errorf("range %d, %v: %d bytes from %d", i, rs[i], len(o.Data), o.Offset)
		}
	}
}

func TestGetRangesFromDiskIsOneSystemCallForWhatLiesTogether(t *testing.T) {
	h, ops := newHooked(), tiertest.Ops{}
	content := string(tiertest.Bytes(1, 40*block))
	set(t, h.inner, key, content)
	o := filled(t, h, block, blob.Span(0, 20*block), blob.Span(30*block, 10*block))
	c := counted(t, h, o, &ops)
	defer mustClose(t, c)
	calls := h.count(blob.OpGet)
	var rs []blob.Range
	for i := range int64(100) {
		rs = append(rs, blob.Span((i*37%100)*800, 700)) // in no order
	}
	ops.Take("")
	wantRanges(t, c, content, rs...)
	if n := ops.Take("pread"); n != 1 {
		t.Errorf("100 ranges of one file are %d system calls", n)
	}
	wantRanges(t, c, content, blob.Span(35*block, block), blob.Span(3*block, 100), blob.Last(10), blob.Span(36*block, 100), blob.Span(0, 0))
	if n := ops.Take("pread"); n != 2 {
		t.Errorf("ranges of two files are %d system calls", n)
	}
	wantCalls(t, h, blob.OpGet, calls)
	if s := c.Stats(); s.DiskHits != 2 || s.Misses != 0 {
		t.Errorf("%+v", s)
	}
}

// What memory and disk have of a range is not fetched again.
func TestRangeIsPutTogetherFromAllTiers(t *testing.T) {
	h := newHooked()
	content := string(tiertest.Bytes(1, 40*block))
	set(t, h.inner, key, content)
	o := filled(t, h, block, blob.Span(0, 3*block), blob.Span(10*block, 2*block))
	o.Memory = 1 << 20
	c := over(t, h, o)
	defer mustClose(t, c)
	wantRange(t, c, blob.Span(5*block, 10), content)
	h.ranges = nil
	wantRanges(t, c, content, blob.Span(block+5, 5*block), blob.Span(9*block, 4*block), blob.Span(2*block, 10))
	wantFetched(t, h, blob.Span(3*block, 2*block), blob.Span(6*block, block), blob.Span(9*block, block), blob.Span(12*block, block))
	wantRange(t, c, blob.Span(block+5, 12*block-5), content)
	wantFetched(t, h, blob.Span(7*block, 2*block))
}

// wantFetched checks what was fetched since the last time, in any order.
func wantFetched(t *testing.T, h *hooked, want ...blob.Range) {
	t.Helper()
	got := map[string]int{}
	for _, r := range h.ranges {
		got[r.String()]++
	}
	wanted := map[string]int{}
	for _, r := range want {
		wanted[r.String()]++
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("fetched %v, want %v", h.ranges, want)
	}
	h.ranges = nil
}

func TestWholeReadFetchesWhatIsMissing(t *testing.T) {
	const big = 1 << 20 // what a request is worth
	for _, tc := range []struct {
		name    string
		block   int64
		size    int
		disk    []blob.Range
		memory  []blob.Range
		fetched []blob.Range
	}{
		{"one run at the end", block, 5*block + 7, nil, []blob.Range{blob.Span(0, 3*block)}, []blob.Range{blob.Span(3*block, 2*block+7)}},
		{"two runs, little saved", block, 5 * block, nil, []blob.Range{blob.Span(2*block, block)}, []blob.Range{{}}},
		{"two runs, much saved", big, 5*big + 7, nil, []blob.Range{blob.Span(2*big, 1)}, []blob.Range{blob.Span(0, 2*big), blob.Span(3*big, 2*big+7)}},
		{"three runs, just enough saved", big, 5 * big, nil, []blob.Range{blob.Span(big, 1), blob.Span(3*big, 1)}, []blob.Range{blob.Span(0, big), blob.Span(2*big, big), blob.Span(4*big, big)}},
		{"nothing here", block, 5 * block, nil, []blob.Range{blob.Last(1)}, []blob.Range{{}}},
		{"all in memory", block, 5 * block, nil, []blob.Range{blob.Span(0, 5*block-1)}, nil},
		{"all on disk", block, 5 * block, []blob.Range{blob.Span(0, 2*block), blob.Span(2*block, 3*block)}, nil, nil},
		{"some on disk", block, 5 * block, []blob.Range{blob.Span(0, 2*block)}, nil, []blob.Range{blob.Span(2*block, 3*block)}},
		{"some in both", block, 5 * block, []blob.Range{blob.Span(0, block)}, []blob.Range{blob.Span(4*block, block)}, []blob.Range{blob.Span(block, 3*block)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHooked()
			content := string(tiertest.Bytes(1, tc.size))
			set(t, h.inner, key, content)
			o := Options{Block: tc.block}
			if tc.disk != nil {
				o = filled(t, h, tc.block, tc.disk...)
				o.Memory = 0
			}
			c := over(t, h, o)
			defer mustClose(t, c)
			for _, r := range tc.memory {
				wantRange(t, c, r, content)
			}
			h.ranges = nil
			wantRange(t, c, blob.Range{}, content)
			wantFetched(t, h, tc.fetched...)
			if it := c.memory.peek(key); it == nil || !it.whole {
				t.Error("the object is not in memory as a whole")
			}
			wantRange(t, c, blob.Range{}, content)
			wantFetched(t, h)
			stateless(t, c)
		})
	}
}

// What was put together of blocks is dropped like any other fill if the object is written meanwhile.
func TestWholePutTogetherBesideAWriteIsDropped(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			h := newHooked()
			content := pattern(5 * block)
			set(t, h.inner, key, content)
			c := over(t, h, Options{Block: block})
			defer mustClose(t, c)
			wantRange(t, c, blob.Span(0, 2*block), content)
			held := hold(blob.OpGet)
			h.hook(nil, held.at)
			done := make(chan string)
			go func() {
				o, err := c.Get(t.Context(), key, nil)
				done <- fmt.Sprint(string(o.Data) == content, err)
			}()
			<-held.reached
			if err := w.do(t.Context(), c); err != nil {
				t.Error(err)
			}
			close(held.release)
			if got := <-done; got != "true <nil>" {
				t.Error(got)
			}
			h.hook(nil, nil)
			wantGet(t, c, key, w.then)
			stateless(t, c)
		})
	}
}

func TestHotPartsOfBlocksOnDiskComeToMemory(t *testing.T) {
	const unit = 256 << 10
	content := string(tiertest.Bytes(1, 4*unit+1000))
	for _, tc := range []struct {
		name  string
		r     blob.Range
		reads int64 // from disk, until it is in memory
	}{
		{"4 KiB", blob.Span(unit+5000, 4<<10), 8},
		{"32 KiB", blob.Span(unit+5000, 32<<10), 4},
		{"half a block", blob.Span(unit, unit/2), 2},
		{"the short block at the end", blob.Last(900), 2},
		{"two blocks", blob.Span(unit-100, 200), 8},
	} {
		for _, dst := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, " dst ", dst), func(t *testing.T) {
				h := newHooked()
				set(t, h.inner, key, content)
				o := filled(t, h, unit, blob.Span(0, 3*unit), blob.Span(3*unit, unit+1000))
				o.Memory = 16 << 20
				c := over(t, h, o)
				defer mustClose(t, c)
				g := &blob.GetOptions{Range: tc.r}
				if dst {
					g.Dst = make([]byte, 40<<12)
				}
				off, n, _ := tc.r.Resolve(int64(len(content)))
				for range 20 {
					got, err := c.Get(t.Context(), key, g)
					if err != nil || string(got.Data) != content[off:off+n] {
						t.Fatalf("%d bytes, %v", len(got.Data), err)
					}
				}
				if s := c.Stats(); s.DiskHits != tc.reads || s.MemoryHits != 20-tc.reads || s.Misses != 0 {
					t.Errorf("%d hits on disk, want %d; %d in memory, %d misses", s.DiskHits, tc.reads, s.MemoryHits, s.Misses)
				}
			})
		}
	}
}

// What is read whole comes to memory by the second time at the latest, also if the caller's buffer took it the first time.
func TestWholeReadsIntoDstComeToMemory(t *testing.T) {
	for _, size := range []int{100, block, 5*block + 7} {
		h := newHooked()
		content := string(tiertest.Bytes(1, size))
		set(t, h.inner, key, content)
		o := filled(t, h, block, blob.Range{})
		o.Memory = 1 << 20
		c := over(t, h, o)
		g := &blob.GetOptions{Dst: make([]byte, size)}
		for range 5 {
			if got, err := c.Get(t.Context(), key, g); err != nil || string(got.Data) != content {
				t.Fatal(err)
			}
		}
		if s := c.Stats(); s.DiskHits != 2 || s.MemoryHits != 3 {
			t.Errorf("%d bytes: %d hits on disk, %d in memory", size, s.DiskHits, s.MemoryHits)
		}
		mustClose(t, c)
	}
}

// A scan of small reads, and small reads at random all over a disk tier larger than memory, must not read blocks for them.
func TestColdSmallReadsDoNotReadBlocks(t *testing.T) {
	const unit, objects, blocks = 256 << 10, 64, 4
	inner := memblob.New(nil)
	o := Options{Memory: 8 << 20, Dir: t.TempDir(), Disk: 256 << 20, Block: unit}
	c := over(t, inner, o)
	defer mustClose(t, c)
	for i := range objects {
		info := blob.Info{Key: fmt.Sprint(i), Version: "v", Size: blocks * unit, ModTime: time.Unix(1, 0)}
		for !c.disk.Put(info, 0, make([]byte, blocks*unit)) {
			written(t, c.disk)
		}
	}
	written(t, c.disk)
	read := func(i, off int64) {
		if _, err := c.Get(t.Context(), fmt.Sprint(i), &blob.GetOptions{Range: blob.Span(off, 4<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(objects) {
		for k := range int64(blocks) {
			read(i, k*unit+unit/2)
		}
	}
	if s := c.Stats(); s.DiskHits != objects*blocks || s.Disk.ReadBytes != s.DiskHitBytes {
		t.Errorf("scan: %d hits, %d bytes read for %d", s.DiskHits, s.Disk.ReadBytes, s.DiskHitBytes)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		read(rnd.Int64N(objects), rnd.Int64N(blocks*unit/4096)*4096)
	}
	s := c.Stats()
	t.Logf("%.2f bytes read for each that was asked for, %d hits on disk, %d in memory", float64(s.Disk.ReadBytes)/float64(s.DiskHitBytes), s.DiskHits, s.MemoryHits)
	if s.Disk.ReadBytes > s.DiskHitBytes*2 {
		t.Errorf("%d bytes read from disk for %d", s.Disk.ReadBytes, s.DiskHitBytes)
	}
}

// A block that is read from disk for memory while the object is written belongs to the reader, and to no one after.
func TestBlocksFromDiskBesideAWriteAreDropped(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			h := newHooked()
			content := pattern(5 * block)
			was := set(t, h.inner, key, content).Version
			o := filled(t, h, block, blob.Span(0, 5*block))
			o.Memory = 1 << 20
			held, preads := hold("pread"), 0
			c := over(t, h, o)
			defer mustClose(t, c)
			reopen(t, c, o.Dir, diskcache.Options{Size: o.Disk, Fault: func(op, _ string) error {
				if op == "pread" {
					if preads++; preads == 2 { // the first is of the range, the second of the block
						held.at(op)
					}
				}
				return nil
			}})
			wantRange(t, c, blob.Span(block+5, 10), content)
			done := make(chan string)
			go func() {
				o, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(block+5, 10)})
				done <- fmt.Sprint(string(o.Data) == content[block+5:block+15], err)
			}()
			<-held.reached
			if err := w.do(t.Context(), c); err != nil {
				t.Error(err)
			}
			close(held.release)
			if got := <-done; got != "true <nil>" {
				t.Error(got)
			}
			if it := c.memory.peek(key); it != nil && it.obj.Version == was {
				t.Error("memory has what was there before the write")
			}
			wantGet(t, c, key, w.then)
			stateless(t, c)
		})
	}
}

// What is too large to be fetched for the cache goes to the store as a whole, and the part of it that is on disk is not read for nothing.
func TestRangeThatMustGoToTheStoreDoesNotReadTheDisk(t *testing.T) {
	inner := memblob.New(nil)
	content := pattern(20 * block)
	set(t, inner, key, content)
	c := over(t, inner, Options{Memory: -1, Block: block, MaxFill: 4 * block, Dir: t.TempDir(), Disk: 8 << 20})
	defer mustClose(t, c)
	for i := range int64(3) {
		wantRange(t, c, blob.Span(i*4*block, 4*block), content)
	}
	written(t, c.disk)
	wantRange(t, c, blob.Span(5, 11*block), content) // three times MaxFill, and all there
	before := c.Stats()
	if before.Disk.Reads == 0 || before.Bypassed != 0 {
		t.Errorf("%+v", before)
	}
	wantRange(t, c, blob.Span(5, 18*block), content)
	if now := c.Stats(); now.Disk.Reads != before.Disk.Reads || now.Bypassed != 1 {
		t.Errorf("%d reads of the disk, %d of the store", now.Disk.Reads-before.Disk.Reads, now.Bypassed)
	}
}
