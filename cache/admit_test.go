package cache

import (
	"bytes"
	"context"
	"hash/crc32"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// bent is a store that breaks its promises: bend changes what Get says. nil: it is honest.
type bent struct {
	blob.Blob
	content []byte
	bend    func(b *bent, r blob.Range, o *blob.Object)
}

func (b *bent) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	if opts == nil {
		opts = new(blob.GetOptions)
	}
	obj, err := b.Blob.Get(ctx, key, opts)
	if err == nil && b.bend != nil {
		b.bend(b, opts.Range, &obj)
	}
	return obj, err
}

// from makes o the bytes [off, off+n), with zeros where there are none.
func (b *bent) from(o *blob.Object, off, n int64) {
	data := make([]byte, n)
	copy(data[max(0, -off):], b.content[max(0, off):])
	o.Offset, o.Data = off, data
}

// bends are the answers of which nothing may stay: each is whole in itself and is not what was asked for. The first five are what a retried body
// that began at another place leaves, as in slatedb/slatedb #1729.
var bends = map[string]func(b *bent, r blob.Range, o *blob.Object){
	"superset":              func(b *bent, _ blob.Range, o *blob.Object) { b.from(o, o.Offset-1000, int64(len(o.Data))+2000) },
	"begins too early":      func(b *bent, _ blob.Range, o *blob.Object) { b.from(o, o.Offset-1, int64(len(o.Data))) },
	"begins too late":       func(b *bent, _ blob.Range, o *blob.Object) { b.from(o, o.Offset+1, int64(len(o.Data))) },
	"says too early":        func(_ *bent, _ blob.Range, o *blob.Object) { o.Offset = max(o.Offset-4<<20, -1) },
	"says too late":         func(_ *bent, _ blob.Range, o *blob.Object) { o.Offset += 4 << 20 },
	"more than asked for":   func(_ *bent, _ blob.Range, o *blob.Object) { o.Data = append(bytes.Clone(o.Data), 0) },
	"past the object's end": func(_ *bent, _ blob.Range, o *blob.Object) { o.Data = append(bytes.Clone(o.Data), o.Data...) },
	"short":                 func(_ *bent, _ blob.Range, o *blob.Object) { o.Data = o.Data[:len(o.Data)-1] },
	"another key":           func(_ *bent, _ blob.Range, o *blob.Object) { o.Key = "another" },
	"no version":            func(_ *bent, _ blob.Range, o *blob.Object) { o.Version = "" },
}

// TestAnswersThatDoNotFitLeaveNothing reads 10 MiB in blocks of 4 MiB, of which the last is short, from a store that answers wrongly for a while.
func TestAnswersThatDoNotFitLeaveNothing(t *testing.T) {
	const size = 10 << 20
	content := tiertest.Bytes(1, size)
	reads := []blob.Range{{}, blob.Span(100, 100), blob.Span(3<<20, 2<<20), blob.Span(8<<20, 4<<20), blob.Last(3 << 20), blob.From(1)}
	for name, bend := range bends {
		t.Run(name, func(t *testing.T) {
			inner := memblob.New(nil)
			set(t, inner, key, string(content))
			store := &bent{Blob: inner, content: content, bend: bend}
			dir := t.TempDir()
			c := over(t, store, Options{Block: 4 << 20, Dir: dir, Disk: 256 << 20})
			for _, r := range reads {
				_, _ = c.Get(t.Context(), key, &blob.GetOptions{Range: r}) // what a store says wrongly the caller gets to hear as it is
				_, _ = c.GetRanges(t.Context(), key, []blob.Range{r, blob.Span(9<<20, 1)}, nil)
			}
			written(t, c.disk)
			c.memory.cache.CleanUp()
			if n, s := c.memory.bytes(), c.Stats(); n != 0 || s.Disk.Entries != 0 || s.Disk.Fills != 0 {
				t.Errorf("kept: %d bytes in memory, %+v", n, s)
			}
			// So it is with what was learned before: the good blocks stay and the bad ones are not put beside them.
			store.bend = nil
			wantRange(t, c, blob.Span(10, 10), string(content))
			store.bend = bend
			c.memory.cache.CleanUp()
			before := c.memory.bytes()
			_, _ = c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(4<<20, 10)})
			_, _ = c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Last(10)})
			c.memory.cache.CleanUp()
			if n := c.memory.bytes(); n != before {
				t.Errorf("%d bytes in memory, %d before", n, before)
			}
			store.bend = nil
			for range 2 {
				for _, r := range reads {
					wantRange(t, c, r, string(content))
				}
			}
			written(t, c.disk)
			tiertest.WantBlocks(t, dir, size, 4<<20)
			stateless(t, c)
			mustClose(t, c)
		})
	}
}

// A store that does not honour the condition sends blocks of another version: they are not put beside those of the first.
func TestBlockOfAVersionThatWasNotAskedForIsNotKept(t *testing.T) {
	v1, v2 := pattern(3*block), string(tiertest.Bytes(2, 3*block))
	inner := memblob.New(nil)
	store := &bent{Blob: inner}
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	set(t, inner, key, v1)
	wantRange(t, c, blob.Span(0, 10), v1)
	theirs := set(t, inner, key, v2)
	store.Blob = unconditional{inner}
	for range 2 {
		o, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(block, 10)})
		if err != nil || o.Version != theirs.Version || string(o.Data) != v2[block:block+10] {
			t.Errorf("%d bytes of version %q, %v", len(o.Data), o.Version, err)
		}
	}
}

// unconditional ignores conditions.
type unconditional struct{ blob.Blob }

func (u unconditional) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	o := *opts
	o.If = blob.Condition{}
	return u.Blob.Get(ctx, key, &o)
}

// A whole object whose bytes do not have the checksum that the store states with them is not kept.
func TestBytesWithoutTheStatedChecksumAreNotKept(t *testing.T) {
	content := pattern(3 * block)
	inner := memblob.New(nil)
	set(t, inner, key, content)
	flip := true
	store := &bent{Blob: inner, bend: func(_ *bent, _ blob.Range, o *blob.Object) {
		if o.HasCRC32C = true; flip && len(o.Data) > 0 {
			o.Data = bytes.Clone(o.Data)
			o.Data[len(o.Data)-1] ^= 1
		}
		o.CRC32C = crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli))
	}}
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	_ = get(t, c, key) // the store's own answer, after the cache has not believed it
	flip = false
	wantGet(t, c, key, content)
	flip = true
	wantGet(t, c, key, content) // from memory
}

// The block is of the object that the read began with, or it is no answer to it.
func TestBlockWithAnotherSizeIsNoAnswer(t *testing.T) {
	content := []byte(pattern(3 * block))
	inner := memblob.New(nil)
	set(t, inner, key, string(content))
	store := &bent{Blob: inner, content: content}
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	wantRange(t, c, blob.Span(0, 10), string(content))
	asked := 0
	store.bend = func(_ *bent, _ blob.Range, o *blob.Object) { o.Size += block; asked++ }
	o, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(block, 10)})
	if err != nil || o.Size != 4*block || asked != 2 {
		t.Errorf("size %d, %v: %d questions, want the store's own answer to the caller's", o.Size, err, asked)
	}
}

// A cache whose blocks are too large to be fetched sends ranges as they are: what they bring is less than the block it lies in.
func TestPartOfABlockIsNotTakenForTheBlock(t *testing.T) {
	for name, o := range map[string]Options{
		"memory": {Memory: 64 << 10, Block: 64 << 10}, "disk": {Block: 64 << 10, FillBytes: 16 << 10, Dir: t.TempDir(), Disk: 8 << 20},
	} {
		inner := memblob.New(nil)
		content := pattern(3 * 64 << 10)
		set(t, inner, key, content)
		c := over(t, inner, o)
		for _, r := range []blob.Range{blob.Span(0, block), blob.Span(0, 2*block), blob.Span(100, block), blob.Span(64<<10, block), blob.Span(64<<10, block+1), {}} {
			wantRange(t, c, r, content)
		}
		if n := c.Stats().MemoryHits; n != 0 {
			t.Errorf("%s: %d hits", name, n)
		}
		mustClose(t, c)
	}
}
