package cache

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// MaxGet bounds the sum of all ranges, whichever way they are answered: of an object of which nothing is known, and of one in memory.
func TestMaxGetBoundsTheSumOfRanges(t *testing.T) {
	inner := memblob.New(&memblob.Options{MaxGet: 3 * block})
	set(t, inner, key, pattern(10*block))
	c := over(t, inner, Options{Block: block, MaxGet: 3 * block})
	defer mustClose(t, c)
	for range 3 {
		objs, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 2*block), blob.Span(10, 2*block-10)}, nil)
		if !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("%d results, %v", len(objs), err)
		}
		wantRange(t, c, blob.Span(0, 2*block), pattern(10*block))
	}
}

// A block may be more than the store returns at once, and no read pays for that with a request that must fail.
func TestBlocksAreNoLargerThanWhatTheStoreReturns(t *testing.T) {
	content := pattern(40 * block)
	for name, o := range map[string]Options{"block": {Block: 8 * block}, "run": {Block: 4 * block}} {
		h := newHooked()
		h.inner = memblob.New(&memblob.Options{MaxGet: 6 * block})
		set(t, h.inner, key, content)
		o.MaxGet = 6 * block
		c := over(t, h, o)
		wantRange(t, c, blob.Span(block, 10), content)
		wantRange(t, c, blob.Span(9*block, 6*block), content) // two blocks of 4, which one request may not have
		if n := h.count(blob.OpGet); n > 3 {
			t.Errorf("%s: %d requests", name, n)
		}
		mustClose(t, c)
	}
}

// Two callers who append to what they got do not write to the same place.
func TestWhatIsHandedOutHasNoRoomToAppend(t *testing.T) {
	content := pattern(1000)
	inner := memblob.New(nil)
	set(t, inner, key, content)
	store := &bent{Blob: inner, bend: func(_ *bent, _ blob.Range, o *blob.Object) {
		o.Data = append(make([]byte, 0, len(o.Data)+50), o.Data...)
	}}
	c := over(t, store, Options{Block: block})
	defer mustClose(t, c)
	for i := range 3 {
		o, err := c.Get(t.Context(), key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cap(o.Data) != len(o.Data) {
			t.Errorf("read %d: the capacity is %d of %d", i, cap(o.Data), len(o.Data))
		}
	}
}

// A block may be as large as numbers are: it is never reached, and nothing overflows on the way.
func TestBlockBeyondAllObjects(t *testing.T) {
	content := pattern(10 * block)
	for _, o := range []Options{{}, {Dir: t.TempDir(), Disk: 8 << 20}} {
		inner := memblob.New(nil)
		set(t, inner, key, content)
		o.Block = math.MaxInt64 / block * block
		c := over(t, inner, o)
		for _, r := range []blob.Range{blob.Last(10), blob.Span(2*block, 10), blob.From(3 * block), {}, blob.Last(block)} {
			wantRange(t, c, r, content)
		}
		mustClose(t, c)
	}
}

// A block whose neighbourhood the store cannot vouch for does not keep it from answering what was asked.
func TestFaultBesideTheRangeIsNoFaultOfTheRead(t *testing.T) {
	content := pattern(10 * block)
	for _, kind := range []error{blob.ErrCorrupt, blob.ErrTruncated} {
		inner := memblob.New(nil)
		set(t, inner, key, content)
		store := &picky{Blob: inner, kind: kind, bad: 3*block + 100}
		c := over(t, store, Options{Block: block})
		for range 2 { // of an object of which nothing is known, and of a known one
			wantRange(t, c, blob.Span(3*block+200, 10), content)
			wantRange(t, c, blob.Span(5*block, 10), content)
			objs, err := c.GetRanges(t.Context(), key, []blob.Range{blob.Span(0, 1), blob.Span(3*block, 1)}, nil) // neither covers it
			if err != nil || len(objs) != 2 {
				t.Errorf("GetRanges: %v", err)
			}
		}
		if _, err := c.Get(t.Context(), key, &blob.GetOptions{Range: blob.Span(3*block, 200)}); !errors.Is(err, kind) {
			t.Errorf("what covers it: %v", err)
		}
		mustClose(t, c)
	}
}

// picky is a store that cannot read the byte at bad.
type picky struct {
	blob.Blob
	kind error
	bad  int64
}

func (p *picky) Get(ctx context.Context, key string, opts *blob.GetOptions) (blob.Object, error) {
	o, err := p.Blob.Get(ctx, key, opts)
	if err == nil && o.Offset <= p.bad && p.bad < o.Offset+int64(len(o.Data)) {
		return blob.Object{}, blob.Fail(blob.OpGet, "picky", key, blob.NotApplied, p.kind)
	}
	return o, err
}

func (p *picky) GetRanges(ctx context.Context, key string, rs []blob.Range, opts *blob.GetOptions) ([]blob.Object, error) {
	return p.Blob.GetRanges(ctx, key, rs, opts)
}
