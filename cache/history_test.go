//go:build linux || darwin

package cache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/blob/blobtest"
	"github.com/wholeblob/wholeblob/internal/diskcache"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// history is a store that remembers what each key has held, in order; nil stands for absence. Its answers take their time, so that others
// come between what it does and who is told.
type history struct {
	blob.Blob
	mu   sync.Mutex // held while a write is applied, so that held is never behind the store
	held map[string][][]byte
}

// late lets others run, now and then.
func late() {
	if rand.IntN(3) > 0 {
		return
	}
	for range rand.IntN(1000) {
		runtime.Gosched()
	}
}

func (h *history) Get(ctx context.Context, key string, o *blob.GetOptions) (blob.Object, error) {
	defer late()
	return h.Blob.Get(ctx, key, o)
}

func (h *history) Set(ctx context.Context, key string, src blob.Source, o *blob.SetOptions) (blob.Info, error) {
	late()
	defer late()
	h.mu.Lock()
	defer h.mu.Unlock()
	info, err := h.Blob.Set(ctx, key, src, o)
	if err == nil {
		obj, getErr := h.Blob.Get(ctx, key, nil)
		if getErr != nil {
			panic(getErr)
		}
		h.held[key] = append(h.held[key], bytes.Clone(append(obj.Data, 0))[:len(obj.Data)]) // not nil
	}
	return info, err
}

func (h *history) Delete(ctx context.Context, key string, o *blob.DeleteOptions) error {
	late()
	defer late()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.Blob.Delete(ctx, key, o)
	if err == nil {
		h.held[key] = append(h.held[key], nil)
	}
	return err
}

func (h *history) DeleteAll(ctx context.Context, keys []string) error {
	late()
	defer late()
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.Blob.DeleteAll(ctx, keys)
	for _, key := range keys {
		h.held[key] = append(h.held[key], nil)
	}
	return err
}

// moment returns the number of what key holds now.
func (h *history) moment(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[key] == nil {
		h.held[key] = [][]byte{nil}
	}
	return len(h.held[key]) - 1
}

// said reports whether objs or err is the answer to a read of rs at some moment from that one until now.
func (h *history) said(key string, from int, rs []blob.Range, objs []blob.Object, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, content := range h.held[key][from:] {
		if content == nil {
			if blob.KindOf(err) == blob.ErrNotFound {
				return true
			}
			continue
		}
		good := err == nil
		for i, r := range rs {
			off, n, refused := r.Resolve(int64(len(content)))
			if refused != nil {
				good = blob.KindOf(err) == blob.ErrInvalidRange
				break
			}
			good = good && objs[i].Size == int64(len(content)) && objs[i].Offset == off && bytes.Equal(objs[i].Data, content[off:off+n])
		}
		if good {
			return true
		}
	}
	return false
}

// step is one call: it returns what is wrong with the answer, "" if nothing is.
type step func(ctx context.Context, c *Cache) string

// drawStep draws a read or a write; write numbers the contents.
func drawStep(t *rapid.T, h *history, write *uint64) step {
	k := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	switch rapid.IntRange(0, 9).Draw(t, "call") {
	case 0, 1:
		*write++
		data := tiertest.Bytes(*write, rapid.SampledFrom(sizes).Draw(t, "size"))
		stream := rapid.Bool().Draw(t, "stream")
		return func(ctx context.Context, c *Cache) string {
			src := blob.Bytes(data)
			if stream {
				src = blob.Stream(bytes.NewReader(data), -1)
			}
			_, _ = c.Set(ctx, k, src, nil)
			return ""
		}
	case 2:
		return func(ctx context.Context, c *Cache) string { _ = c.Delete(ctx, k, nil); return "" }
	case 3:
		return func(ctx context.Context, c *Cache) string { _ = c.DeleteAll(ctx, []string{"b", k}); return "" }
	}
	rs := []blob.Range{drawRange(t)}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		rs = append(rs, drawRange(t))
	}
	dst := rapid.Bool().Draw(t, "dst") && len(rs) == 1
	return func(ctx context.Context, c *Cache) string {
		from := h.moment(k)
		var objs []blob.Object
		var err error
		if len(rs) > 1 {
			objs, err = c.GetRanges(ctx, k, rs, nil)
		} else {
			o := blob.GetOptions{Range: rs[0]}
			if dst {
				o.Dst = make([]byte, 21*block)
			}
			var obj blob.Object
			obj, err = c.Get(ctx, k, &o)
			objs = []blob.Object{obj}
		}
		if blob.KindOf(err) != blob.ErrUnavailable && !h.said(k, from, rs, objs, err) {
			return fmt.Sprintf("%s %v: %v, %s", k, rs, err, lengths(objs))
		}
		return ""
	}
}

func lengths(objs []blob.Object) (s string) {
	for _, o := range objs {
		s += fmt.Sprintf("%d from %d of %d in version %s; ", len(o.Data), o.Offset, o.Size, o.Version)
	}
	return s
}

// TestReadsBesideWritesAreOfTheirTime has readers and writers at once, on a store and a disk that fail now and then, over several lives of the disk tier. A
// read is what the store held at some moment between its beginning and its end, which its history tells; and when all have
// ended, what it holds.
func TestReadsBesideWritesAreOfTheirTime(t *testing.T) {
	dir := t.TempDir()
	var runs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		h := &history{Blob: memblob.New(nil), held: map[string][][]byte{}}
		var store blob.Blob = blobtest.NewFaults(h,
			blobtest.Fault{Do: blobtest.FailAfter, Chance: 0.05}, blobtest.Fault{Do: blobtest.FailBefore, Chance: 0.05},
		).Seed(rapid.Uint64().Draw(t, "seed"))
		if rapid.Bool().Draw(t, "terse") {
			store = terse{store}
		}
		o := drawOptions(t)
		if rapid.Bool().Draw(t, "write-once") {
			o.Revalidate, o.FillBytes = 0, 0 // what keeps most
		}
		if rapid.Bool().Draw(t, "disk") {
			o.Disk, o.Dir = 256<<10, filepath.Join(dir, fmt.Sprint(runs.Add(1)))
		}
		write := uint64(0)
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			c, err := New(t.Context(), store, &o)
			if err != nil {
				t.Fatal(err)
			}
			sick := failOneIn(t, c, o, rapid.SampledFrom([]int{0, 3, 50}).Draw(t, "disk fault"))
			plans := make([][]step, 4)
			for i := range plans {
				for range rapid.IntRange(1, 20).Draw(t, "steps") {
					plans[i] = append(plans[i], drawStep(t, h, &write))
				}
			}
			for _, bad := range atOnce(t.Context(), c, plans) {
				t.Error(bad)
			}
			sick.Store(false)
			for _, k := range []string{"a", "b"} {
				from := h.moment(k)
				obj, err := c.Get(t.Context(), k, nil)
				if blob.KindOf(err) != blob.ErrUnavailable && !h.said(k, from, []blob.Range{{}}, []blob.Object{obj}, err) {
					t.Errorf("%s, when all have ended: %v, %s", k, err, lengths([]blob.Object{obj}))
				}
			}
			if err := c.shut(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// failOneIn gives c a disk tier in the same directory whose file system is late, and fails one operation in n, while the result is set; 0: none.
func failOneIn(t *rapid.T, c *Cache, o Options, n int) *atomic.Bool {
	sick := new(atomic.Bool)
	if c.disk == nil {
		return sick
	}
	if err := c.disk.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := diskcache.Open(o.Dir, diskcache.Options{Size: o.Disk, Fault: func(_, _ string) error {
		if sick.Load() {
			late()
		}
		if sick.Load() && n > 0 && rand.IntN(n) == 0 {
			return syscall.EIO
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.disk = d
	sick.Store(true)
	return sick
}

// atOnce does the steps of each plan in order, all plans at once, and returns what was wrong.
func atOnce(ctx context.Context, c *Cache, plans [][]step) (bad []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, plan := range plans {
		wg.Go(func() {
			for _, do := range plan {
				if s := do(ctx, c); s != "" {
					mu.Lock()
					bad = append(bad, s)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return bad
}
