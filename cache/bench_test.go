package cache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/maypok86/otter/v2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// BenchmarkMemoryHit reads 4 KiB objects from memory, beside the same reads of a bare otter: of one that holds only the bytes, and of one
// that returns the same result, a blob.Object.
func BenchmarkMemoryHit(b *testing.B) {
	const keys = 1024
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("tables/%08d.parquet", i)
	}
	b.Run("otter", func(b *testing.B) {
		benchOtter(b, names, make([]byte, 4<<10), func(v []byte) int { return len(v) })
	})
	b.Run("otter of objects", func(b *testing.B) {
		benchOtter(b, names, blob.Object{Data: make([]byte, 4<<10)}, func(v blob.Object) int { return len(v.Data) })
	})
	inner := memblob.New(nil)
	c, err := New(b.Context(), inner, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range names {
		if _, err := c.Set(b.Context(), n, blob.Bytes(make([]byte, 4<<10)), nil); err != nil {
			b.Fatal(err)
		}
	}
	for _, read := range []struct {
		name string
		opts *blob.GetOptions
	}{{"whole", nil}, {"range", &blob.GetOptions{Range: blob.Span(100, 1000)}}, {"dst", &blob.GetOptions{Dst: make([]byte, 4<<10)}}} {
		b.Run(read.name, func(b *testing.B) {
			opts := read.opts
			ctx := b.Context()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if o, err := c.Get(ctx, names[i%keys], opts); err != nil || len(o.Data) < 1000 {
					b.Fatal(err)
				}
			}
		})
	}
	if err := c.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func benchOtter[V any](b *testing.B, names []string, value V, size func(V) int) {
	o := otter.Must(&otter.Options[string, V]{MaximumWeight: 1 << 20, Weigher: func(string, V) uint32 { return 64 }})
	for _, n := range names {
		o.Set(n, value)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v, ok := o.GetIfPresent(names[i%len(names)]); !ok || size(v) != 4<<10 {
			b.Fatal("miss")
		}
	}
}

// trace is a Zipf-distributed series of keys, with a scan over as many keys that come once now and then.
func trace(n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 1, 1<<16)
	var keys []string
	for scan := 0; len(keys) < n; {
		for range 2000 {
			keys = append(keys, fmt.Sprint("hot-", zipf.Uint64()))
		}
		for range 1000 {
			scan++
			keys = append(keys, fmt.Sprint("scan-", scan))
		}
	}
	return keys
}

// Bookkeeping must not cost what the policy gains.
func TestHitRatioIsThatOfOtterAlone(t *testing.T) {
	const size, fit = 4 << 10, 1000
	const weight = size + size/16 + entryOverhead + 120 // what an entry weighs with its head
	keys := trace(60_000)
	o := otter.Must(&otter.Options[string, bool]{MaximumSize: fit})
	alone := 0
	for _, k := range keys {
		if _, ok := o.GetIfPresent(k); ok {
			alone++
		} else {
			o.Set(k, true)
		}
	}
	inner := memblob.New(nil)
	data := make([]byte, size)
	c := over(t, inner, Options{Memory: fit * weight, NoWriteThrough: true})
	defer mustClose(t, c)
	for _, k := range keys {
		if _, err := inner.Set(t.Context(), k, blob.Bytes(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range keys {
		get(t, c, k)
	}
	ours := c.Stats().MemoryHits
	t.Logf("hits of %d: otter alone %d, cache %d", len(keys), alone, ours)
	if float64(ours) < 0.98*float64(alone) {
		t.Errorf("%d hits, otter alone has %d", ours, alone)
	}
}

// A hit allocates nothing beyond the result, which is returned by value.
func TestMemoryHitAllocatesNothing(t *testing.T) {
	c := over(t, memblob.New(nil), Options{Block: block})
	defer mustClose(t, c)
	set(t, c, key, pattern(block))
	set(t, c.inner, "blocks", pattern(10*block))
	opts := &blob.GetOptions{Range: blob.Span(block+10, 100)}
	dst := &blob.GetOptions{Dst: make([]byte, block)}
	ctx := t.Context()
	for range 2 {
		n := testing.AllocsPerRun(100, func() {
			_, _ = c.Get(ctx, key, nil)
			_, _ = c.Get(ctx, key, dst)
			_, _ = c.Get(ctx, "blocks", opts)
		})
		if n != 0 {
			t.Errorf("three hits allocate %v times", n)
		}
	}
}
