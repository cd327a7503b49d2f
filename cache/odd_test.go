package cache

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// Each range, condition, Want and Dst there is, and each together with each other one: what is cached answers as the store does, or the store answers, down
// to the text of the error.
func TestOddReadsAreAnsweredAsByTheStore(t *testing.T) {
	const size = 9000
	whole := func(ctx context.Context, c *Cache) {
		for range 100 { // until it is in front
			_, _ = c.Get(ctx, key, nil)
			_, _ = c.Get(ctx, "empty", nil)
		}
	}
	blocks := func(ctx context.Context, c *Cache) {
		_, _ = c.Get(ctx, key, &blob.GetOptions{Range: blob.Span(0, block)})
		_, _ = c.Get(ctx, key, &blob.GetOptions{Range: blob.Span(size-1, 1)})
	}
	for name, tier := range map[string]struct {
		o    Options
		warm func(context.Context, *Cache)
	}{
		"whole":      {Options{Memory: 1 << 20, Block: block}, whole},
		"blocks":     {Options{Memory: 1 << 20, Block: block}, blocks},
		"whole disk": {diskOnly(""), whole},
		"disk":       {diskOnly(""), blocks},
		"both":       {Options{Memory: 32 << 10, Block: block, Disk: 8 << 20}, blocks},
		"asked":      {Options{Memory: 1 << 20, Block: block, Revalidate: Always}, whole},
	} {
		t.Run(name, func(t *testing.T) {
			st := memblob.New(nil)
			info := set(t, st, key, string(tiertest.Bytes(1, size)))
			set(t, st, "empty", "")
			if tier.o.Disk > 0 {
				tier.o.Dir = t.TempDir()
			}
			c := over(t, st, tier.o)
			defer mustClose(t, c)
			for i, q := range oddReads(size, info.Version) {
				if i%200 == 0 {
					tier.warm(t.Context(), c) // again, since what a Want contradicts is dropped
				}
				got, err := c.Get(t.Context(), q.key, &q.o)
				want, wantErr := st.Get(t.Context(), q.key, &q.o)
				wantAnswer(t, q, got, err, want, wantErr)
				q.o.Dst = nil
				rs := []blob.Range{q.o.Range, blob.Span(0, 1)}
				q.o.Range = blob.Range{}
				gots, err := c.GetRanges(t.Context(), q.key, rs, &q.o)
				wants, wantErr := st.GetRanges(t.Context(), q.key, rs, &q.o)
				if len(gots) != len(wants) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%v of %v: %d objects, %v; the store has %d, %v", q, rs, len(gots), err, len(wants), wantErr)
					continue
				}
				for i := range gots {
					wantAnswer(t, q, gots[i], nil, wants[i], nil)
				}
			}
		})
	}
}

type oddRead struct {
	key string
	o   blob.GetOptions
}

func (q oddRead) String() string {
	return fmt.Sprintf("%q %v %v %+v Dst %d", q.key, q.o.Range, q.o.If, q.o.Want, len(q.o.Dst))
}

func wantAnswer(t *testing.T, q oddRead, got blob.Object, err error, want blob.Object, wantErr error) {
	t.Helper()
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || string(got.Data) != string(want.Data) || got.Offset != want.Offset || fmt.Sprint(got.Info) != fmt.Sprint(want.Info) {
		t.Errorf("%v: %d bytes from %d of %+v, %v; the store has %d from %d of %+v, %v", q, len(got.Data), got.Offset, got.Info, err, len(want.Data), want.Offset, want.Info, wantErr)
	}
}

// oddReads are reads of an object of that size and version, of an empty one, of none, and of names that are none.
func oddReads(size int64, version string) (all []oddRead) {
	const most = math.MaxInt64
	ranges := []blob.Range{
		{}, blob.Span(-1, 5), blob.Span(0, -1), blob.Span(0, 0), blob.Span(0, size), blob.Span(size-1, 5), blob.Span(size, 0), blob.Span(size, 1), blob.Span(size+1, 0),
		blob.Span(1, most), blob.Span(most, 1), blob.From(-1), blob.From(0), blob.From(size - 1), blob.From(size), blob.From(size + 1), blob.From(most),
		blob.Last(-1), blob.Last(0), blob.Last(1), blob.Last(size), blob.Last(size + 1), blob.Last(most),
	}
	conditions := []blob.Condition{{}, blob.IfVersion(""), blob.IfVersion(version), blob.IfVersion("another"), blob.IfAbsent()}
	wants := []blob.Want{{}, {Size: size, HasSize: true}, {Size: size + 1, HasSize: true}, {Size: -1, HasSize: true}, {Size: 5}, {CRC32C: 1}, {CRC32C: 1, HasCRC32C: true}}
	for _, k := range []string{key, "empty", "absent", "", "a//b\x00"} {
		for _, r := range ranges {
			for _, c := range conditions {
				for _, w := range wants {
					for _, dst := range [][]byte{nil, make([]byte, 3), make([]byte, size+1)} {
						all = append(all, oddRead{k, blob.GetOptions{Range: r, If: c, Want: w, Dst: dst}})
					}
				}
			}
		}
	}
	return all
}
