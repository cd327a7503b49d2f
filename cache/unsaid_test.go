package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

// What a Set does not say the cache asks for by itself if there is a disk, which keeps only what it knows all of: memory may have lost the object
// before someone reads it, or may not take it at all.
func TestWhatSetDoesNotSayDoesNotKeepItFromTheDisk(t *testing.T) {
	for name, o := range map[string]Options{
		"memory and disk":         {},
		"disk":                    {Memory: -1},
		"too large for memory":    {Memory: 16 * block},
		"memory and always":       {Revalidate: Always},
		"fills just large enough": {FillBytes: 5 * block},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHooked()
			h.mangle = forgetTime
			o.Block, o.Dir, o.Disk = block, t.TempDir(), 8<<20
			c := over(t, h, o)
			content := pattern(5 * block)
			info, err := c.Set(t.Context(), key, blob.Bytes([]byte(content)), &blob.SetOptions{Metadata: map[string]string{"a": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			wantCalls(t, h, blob.OpSet, 1)
			if err := c.shut(t.Context()); err != nil { // which waits for the question, and for the disk
				t.Fatal(err)
			}
			if n := h.count(blob.OpGet); n != 1 {
				t.Errorf("%d requests after the Set, want one for what it did not say", n)
			}
			stateless(t, c)
			o.Revalidate = 0
			c = over(t, h, o)
			defer mustClose(t, c)
			before := h.count(blob.OpGet)
			wantRange(t, c, blob.Range{}, content)
			if i, err := c.Stat(t.Context(), key); err != nil || i.Version != info.Version || i.ModTime.IsZero() || i.Metadata["a"] != "1" {
				t.Errorf("%+v, %v", i, err)
			}
			wantCalls(t, h, blob.OpGet, before)
			wantCalls(t, h, blob.OpStat, 0)
		})
	}
}

// The first reader does not ask a second time, and does not wait for the disk.
func TestReaderJoinsTheQuestionThatFollowsASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		h.mangle = forgetTime
		c := over(t, h, Options{Dir: t.TempDir(), Disk: 8 << 20})
		defer mustClose(t, c)
		g := hold(blob.OpGet)
		h.hook(g.at, nil)
		set(t, c, key, "v1") // does not wait for it
		<-g.reached
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := c.Get(ctx, key, nil); gone <- err }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		done := make(chan string, 1)
		go func() { done <- get(t, c, key) }()
		synctest.Wait()
		close(g.release)
		if v := <-done; v != "v1" {
			t.Errorf("Get is %q", v)
		}
		wantCalls(t, h, blob.OpGet, 1)
		written(t, c.disk)
		if n := c.Stats().Disk.Entries; n != 1 {
			t.Errorf("%d entries on disk", n)
		}
	})
}

// The question is lost, or answered too late, or with something else: nothing wrong is kept, and the next read asks.
func TestQuestionThatFollowsASetMayFail(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, c *Cache, h *hooked) string{
		"written by others": func(t *testing.T, _ *Cache, h *hooked) string { set(t, h.inner, key, "v2"); return "v2" },
		"written again":     func(t *testing.T, c *Cache, _ *hooked) string { set(t, c, key, "v2"); return "v2" },
		"written the same":  func(t *testing.T, c *Cache, _ *hooked) string { set(t, c, key, "v1"); return "v1" },
		"deleted": func(t *testing.T, c *Cache, _ *hooked) string {
			if err := c.Delete(t.Context(), key, nil); err != nil {
				t.Error(err)
			}
			return "absent"
		},
		"deleted by others": func(t *testing.T, _ *Cache, h *hooked) string {
			if err := h.inner.Delete(t.Context(), key, nil); err != nil {
				t.Error(err)
			}
			return "absent"
		},
	} {
		for _, late := range []bool{false, true} { // the store answers before, or after
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHooked()
					h.mangle = forgetTime
					o := Options{Dir: t.TempDir(), Disk: 8 << 20}
					c := over(t, h, o)
					g := hold(blob.OpGet)
					if late {
						h.hook(nil, g.at)
					} else {
						h.hook(g.at, nil)
					}
					set(t, c, key, "v1")
					<-g.reached
					want := meanwhile(t, c, h)
					h.hook(nil, nil)
					close(g.release)
					synctest.Wait()
					if late && name[len(name)-6:] == "others" { // the answer was true when it was given: revalidation is for this
						want = "v1"
					}
					wantGet(t, c, key, want)
					stateless(t, c)
					mustClose(t, c)
				})
			})
		}
	}
}

// A store that fails the question, or panics, costs the entry on disk and nothing else.
func TestFailedQuestionIsNobodys(t *testing.T) {
	for name, fault := range map[string]blobtest.Fault{
		"fails": {Do: blobtest.FailBefore, Op: blob.OpGet, Call: 1}, "loses its answer": {Do: blobtest.FailAfter, Op: blob.OpGet, Call: 1}, "panics": {},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHooked()
			h.mangle = forgetTime
			var inner blob.Blob = h
			if fault.Op != "" {
				inner = blobtest.NewFaults(h, fault)
			} else {
				h.hook(func(op string) {
					if op == blob.OpGet {
						panic("boom")
					}
				}, nil)
			}
			c := over(t, inner, Options{Dir: t.TempDir(), Disk: 8 << 20})
			set(t, c, key, "v1")
			synctest.Wait()
			if n := c.Stats().Disk.Entries; n != 0 {
				t.Errorf("%s: %d entries on disk", name, n)
			}
			h.hook(nil, nil)
			wantGet(t, c, key, "v1")
			synctest.Wait()
			if s := c.Stats(); s.Disk.Entries != 1 || s.Bypassed != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			stateless(t, c)
			mustClose(t, c)
		})
	}
}

// Beside another write nothing is asked: what would be kept nobody knows.
func TestOverlappingSetsAskNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHooked()
		h.mangle = forgetTime
		c := over(t, h, Options{Dir: t.TempDir(), Disk: 8 << 20})
		g := hold(blob.OpSet)
		h.hook(nil, g.at)
		first := make(chan error, 1)
		go func() { _, err := c.Set(t.Context(), key, blob.Bytes([]byte("v1")), nil); first <- err }()
		<-g.reached
		h.hook(nil, nil)
		set(t, c, key, "v2")
		synctest.Wait()
		wantCalls(t, h, blob.OpGet, 0)
		close(g.release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		mustClose(t, c)
		stateless(t, c)
	})
}
