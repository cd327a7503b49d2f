package cache

import (
	"runtime"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// diskOnly are options for a disk tier in dir and no memory.
func diskOnly(dir string) Options { return Options{Memory: -1, Dir: dir, Disk: 8 << 20, Block: block} }

func TestDiskServesAfterARestartWithoutTheStore(t *testing.T) {
	h, dir := newHooked(), t.TempDir()
	content := pattern(10*block + 100)
	set(t, h.inner, key, content)
	set(t, h.inner, "small", "v1")
	c := over(t, h, diskOnly(dir))
	wantRange(t, c, blob.Span(2*block+5, block), content)
	wantGet(t, c, "small", "v1")
	if err := c.shut(t.Context()); err != nil { // the inner store goes on
		t.Fatal(err)
	}
	calls := h.count(blob.OpGet)
	for _, o := range []Options{diskOnly(dir), {Dir: dir, Disk: 8 << 20, Block: block}} {
		c = over(t, h, o)
		wantRange(t, c, blob.Span(2*block+5, block), content)
		wantRange(t, c, blob.Span(2*block+700, 10), content)
		wantGet(t, c, "small", "v1")
		wantCalls(t, h, blob.OpGet, calls)
		if s := c.Stats(); s.DiskHits == 0 || s.Misses != 0 {
			t.Errorf("%+v", s)
		}
		if err := c.shut(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What the disk says of a key may be from before a write that begins and ends while it is asked: the write empties it first.
func TestWritesReachTheDisk(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			h, dir := newHooked(), t.TempDir()
			set(t, h.inner, key, "v1")
			c := over(t, h, diskOnly(dir))
			wantGet(t, c, key, "v1")
			if err := w.do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wantGet(t, c, key, w.then)
			wantGet(t, c, key, w.then)
			mustClose(t, c)
		})
	}
}

func TestWriteThroughReachesTheDisk(t *testing.T) {
	h := newHooked()
	c := over(t, h, diskOnly(t.TempDir()))
	defer mustClose(t, c)
	set(t, c, key, "v1")
	for DiskStats(c.disk.Stats()).Fills == 0 && t.Context().Err() == nil { // it is written in the background
		runtime.Gosched()
	}
	wantGet(t, c, key, "v1")
	wantCalls(t, h, blob.OpGet, 0)
}

// A read that learned of v1 from disk before a write ended must not put it into memory afterwards.
func TestHeadFromDiskDoesNotSurviveAWrite(t *testing.T) {
	for name, within := range map[string]bool{"learned-before": false, "learned-within": true} {
		c := over(t, memblob.New(nil), Options{})
		var w watch
		if !within {
			w = c.epochs.watch(key)
		}
		written := c.begin(key)
		if within {
			w = c.epochs.watch(key)
		}
		written.written(nil)
		w.end(func() { t.Errorf("%s: what was known before the write is put into memory after it", name) })
		stateless(t, c)
		mustClose(t, c)
	}
}
