package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// An answer that gives the cached version another size is kept by nobody, nor is what it contradicts: either may be wrong.
func TestAnswersThatContradictEachOtherAreForgotten(t *testing.T) {
	longer := func(_ *bent, _ blob.Range, o *blob.Object) { o.Size += block }
	more := func(_ *bent, _ blob.Range, o *blob.Object) { o.Size, o.Data = o.Size+1, append(o.Data, 'x') }
	for name, tt := range map[string]struct {
		first, then *blob.GetOptions
		bend        func(*bent, blob.Range, *blob.Object)
	}{
		"blocks": {&blob.GetOptions{Range: blob.Span(0, 10)}, &blob.GetOptions{Range: blob.Span(block, 10)}, longer},
		"whole":  {&blob.GetOptions{Range: blob.Span(0, 0)}, nil, more},
	} {
		for i := range 4 {
			firstIsWrong, memory := i%2 == 1, int64(-(i / 2))
			if memory < 0 && name == "whole" {
				continue // nothing of the first read is kept that the second could contradict
			}
			t.Run(fmt.Sprint(name, firstIsWrong, memory), func(t *testing.T) {
				content := pattern(3 * block)
				inner := memblob.New(nil)
				set(t, inner, key, content)
				store := &bent{Blob: inner, content: []byte(content)}
				c := over(t, store, Options{Block: block, Memory: memory, Dir: t.TempDir(), Disk: 1 << 20})
				defer mustClose(t, c)
				for i, opts := range []*blob.GetOptions{tt.first, tt.then} {
					store.bend = nil
					if firstIsWrong == (i == 0) {
						store.bend = longer
						if i == 1 {
							store.bend = tt.bend
						}
					}
					_, _ = c.Get(t.Context(), key, opts) // whatever comes of it
					written(t, c.disk)
				}
				store.bend = nil
				if info, err := c.Stat(t.Context(), key); err != nil || info.Size != 3*block {
					t.Errorf("Stat: size %d, want %d: %v", info.Size, 3*block, err)
				}
				wantRange(t, c, blob.Span(block, 10), content)
				wantGet(t, c, key, content)
			})
		}
	}
}

func TestWholeObjectsAreKeptWhereTheyMayNotFillABlock(t *testing.T) {
	for _, o := range []Options{{Memory: 1 << 20}, {Memory: -1, Dir: t.TempDir(), Disk: 1 << 20}, {FillBytes: 64 << 10}} {
		h := newHooked()
		set(t, h.inner, key, "v1")
		c := over(t, h, o)
		wantGet(t, c, key, "v1")
		if c.disk != nil {
			written(t, c.disk)
		}
		wantGet(t, c, key, "v1")
		wantCalls(t, h, blob.OpGet, 1)
		mustClose(t, c)
	}
}

// Only what is kept of a Set is counted.
func TestWriteThroughIsCountedIfSomethingIsKept(t *testing.T) {
	disk := Options{Memory: -1, Dir: t.TempDir(), Disk: 1 << 20}
	for name, tt := range map[string]struct {
		o      Options
		mangle func(*blob.Info)
		want   int64
	}{
		"memory":                 {Options{}, nil, 1},
		"too large":              {Options{Memory: 1 << 10}, nil, 0},
		"disk":                   {disk, nil, 1},
		"a Set that says little": {Options{}, forgetTime, 1},
		"the same on disk":       {disk, forgetTime, 1},
	} {
		h := newHooked()
		h.mangle = tt.mangle
		c := over(t, h, tt.o)
		set(t, c, key, pattern(1000))
		if n := c.Stats().WriteThroughs; n != tt.want {
			t.Errorf("%s: %d, want %d", name, n, tt.want)
		}
		mustClose(t, c)
	}
}

func forgetTime(info *blob.Info) { info.ModTime = time.Time{} }
