package cache

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
)

// What a Set does not say does not keep what it wrote from the disk: memory may have lost the object before someone reads it, or may not take it at
// all. What is missing is asked for by the first read, once as long as something remembers it; and no Set costs a request more.
func TestWhatSetDoesNotSayDoesNotKeepItFromTheDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		o      Options
		mangle func(*blob.Info)
	}{
		"memory and disk":      {Options{}, forgetTime},
		"disk":                 {Options{Memory: -1}, forgetTime},
		"too large for memory": {Options{Memory: 16 * block}, forgetTime},
		"all but metadata":     {Options{}, func(i *blob.Info) { i.Metadata = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			h, o := newHooked(), tt.o
			h.mangle = tt.mangle
			o.Block, o.Dir, o.Disk = block, t.TempDir(), 8<<20
			c := over(t, h, o)
			content := pattern(5 * block)
			info, err := c.Set(t.Context(), key, blob.Bytes([]byte(content)), &blob.SetOptions{Metadata: map[string]string{"a": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			wantAsked := func(what string, n int) {
				t.Helper()
				if len(h.ranges) != n || n > 0 && h.ranges[0] != blob.Span(0, 0) || h.count(blob.OpStat) != 0 {
					t.Errorf("%s: fetched %v, and %d Stats; want %d questions", what, h.ranges, h.count(blob.OpStat), n)
				}
				h.ranges = nil
			}
			for _, life := range []string{"first", "second"} {
				if err := c.shut(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantAsked("a Set, and a start", 0)
				c = over(t, h, o)
				wantRange(t, c, blob.Span(1, 4*block), content)
				wantAsked("the first read of the "+life+" life", 1)
				for range 2 {
					wantGet(t, c, key, content)
					if i, err := c.Stat(t.Context(), key); err != nil || i.Version != info.Version || i.ModTime.IsZero() || i.Metadata["a"] != "1" {
						t.Errorf("%+v, %v", i, err)
					}
					c.memory.clear()
				}
				wantAsked("the others", 0)
			}
			mustClose(t, c)
			stateless(t, c)
		})
	}
}

// What memory's entry was told the disk knows too, when that is gone.
func TestWhatTheFirstReaderLearnsTheDiskKeeps(t *testing.T) {
	h := newHooked()
	h.mangle = forgetTime
	c := over(t, h, Options{Dir: t.TempDir(), Disk: 8 << 20})
	defer mustClose(t, c)
	set(t, c, key, "v1")
	written(t, c.disk)
	for range 3 {
		wantGet(t, c, key, "v1")
		c.memory.clear()
	}
	wantCalls(t, h, blob.OpGet, 1)
}

// What was learned of an object does not outlive it, not even if the next one has an equal version.
func TestWhatWasLearnedGoesWithTheObject(t *testing.T) {
	h := newHooked()
	h.mangle = func(i *blob.Info) { *i = blob.Info{Key: i.Key, Size: i.Size, Version: "of the content"} }
	store := &bent{Blob: h, bend: func(_ *bent, _ blob.Range, o *blob.Object) { o.Version = "of the content" }}
	c := over(t, store, Options{Memory: -1, Dir: t.TempDir(), Disk: 8 << 20})
	defer mustClose(t, c)
	for _, n := range []string{"1", "2"} {
		if _, err := c.Set(t.Context(), key, blob.Bytes([]byte("v")), &blob.SetOptions{Metadata: map[string]string{"n": n}}); err != nil {
			t.Fatal(err)
		}
		written(t, c.disk)
		for range 2 {
			if o, err := c.Get(t.Context(), key, nil); err != nil || o.Metadata["n"] != n {
				t.Errorf("%v, %v, want n = %s", o.Metadata, err, n)
			}
		}
		wantCalls(t, h, blob.OpGet, map[string]int{"1": 1, "2": 2}[n])
	}
}

// Others may have written before the first read asks for what the Set did not say: their object is read, and nothing of ours.
func TestQuestionAfterASetFindsWhatOthersWrote(t *testing.T) {
	for name, meanwhile := range map[string]struct {
		do   func(t *testing.T, h *hooked)
		want string
	}{
		"written": {func(t *testing.T, h *hooked) { set(t, h.inner, key, "v2") }, "v2"},
		"deleted": {func(t *testing.T, h *hooked) {
			if err := h.inner.Delete(t.Context(), key, nil); err != nil {
				t.Error(err)
			}
		}, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHooked()
				h.mangle = forgetTime
				c := over(t, h, Options{Memory: -1, Dir: t.TempDir(), Disk: 8 << 20})
				v1 := set(t, c, key, "v1").Version
				synctest.Wait()
				if !c.disk.Has(key, v1, 0, 2) {
					t.Error("not on disk")
				}
				meanwhile.do(t, h)
				wantGet(t, c, key, meanwhile.want)
				if c.disk.Has(key, v1, 0, 2) {
					t.Error("still on disk")
				}
				stateless(t, c)
				mustClose(t, c)
			})
		})
	}
}

// A question that fails is asked again by the next read, and the bytes need not be sent.
func TestQuestionAfterASetThatFailsIsAskedAgain(t *testing.T) {
	for _, do := range []blobtest.Fault{{Do: blobtest.FailBefore, Op: blob.OpGet, Call: 1}, {Do: blobtest.FailAfter, Op: blob.OpGet, Call: 1}} {
		h := newHooked()
		h.mangle = forgetTime
		c := over(t, blobtest.NewFaults(h, do), Options{Memory: -1, Dir: t.TempDir(), Disk: 8 << 20})
		set(t, c, key, "v1")
		written(t, c.disk)
		if _, err := c.Get(t.Context(), key, nil); !errors.Is(err, blob.ErrUnavailable) {
			t.Error(err)
		}
		h.ranges = nil
		for range 2 {
			wantGet(t, c, key, "v1")
		}
		if len(h.ranges) != 1 || h.ranges[0] != blob.Span(0, 0) {
			t.Errorf("fetched %v", h.ranges)
		}
		mustClose(t, c)
		stateless(t, c)
	}
}
