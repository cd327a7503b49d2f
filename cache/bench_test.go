package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// BenchmarkMemoryHit reads 4 KiB objects from memory, beside the same reads of a bare otter: of one that holds only the bytes, and of one
// that returns the same result, a blob.Object. They take turns, since the machine is not equally fast for long: what counts are the ratios of
// their medians. Below half its capacity otter does not note what is read; so both are measured, a roomy tier and a full one.
func BenchmarkMemoryHit(b *testing.B) {
	const size = 4 << 10
	names := make([]string, readsInATurn/passes)
	for i := range names {
		names[i] = fmt.Sprintf("tables/%08d.parquet", i)
	}
	ranged, dst := &blob.GetOptions{Range: blob.Span(100, 1000)}, &blob.GetOptions{Dst: make([]byte, size)}
	for _, fill := range []struct {
		name     string
		capacity int64
	}{{"roomy", DefaultMemory}, {"full", readsInATurn / passes * size * 3 / 2}} {
		c, err := New(b.Context(), memblob.New(nil), &Options{Memory: fill.capacity})
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range names {
			if _, err := c.Set(b.Context(), n, blob.Bytes(make([]byte, size)), nil); err != nil {
				b.Fatal(err)
			}
		}
		ways := []func() bool{
			readsOfOtter(fill.capacity, names, make([]byte, size), func(v []byte) int { return len(v) }),
			readsOfOtter(fill.capacity, names, blob.Object{Data: make([]byte, size)}, func(v blob.Object) int { return len(v.Data) }),
			readsOf(b.Context(), c, names, nil, size),
			readsOf(b.Context(), c, names, ranged, 1000),
		}
		for _, readers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/readers=%d", fill.name, readers), func(b *testing.B) {
				m := turns(b, readers, ways)
				b.ReportMetric(m[0]/m[2], "Get/bytes")
				b.ReportMetric(m[1]/m[2], "Get/objects")
				b.ReportMetric(m[0]/m[3], "range/bytes")
				b.ReportMetric(m[0]/readsInATurn, "bytes-ns")
				b.ReportMetric(m[2]/readsInATurn, "Get-ns")
			})
		}
		b.Run(fill.name+"/dst", func(b *testing.B) {
			turn := readsOf(b.Context(), c, names, dst, size)
			for b.Loop() {
				if !turn() {
					b.Fatal("a miss")
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/readsInATurn, "Get-ns")
		})
		if s := c.Stats(); s.Misses != 0 {
			b.Fatal("the store was asked")
		}
		if err := c.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

const (
	passes       = 4 // over all names in a turn
	readsInATurn = passes * 1024
)

// readsOfOtter returns a turn of reads of a bare otter.
func readsOfOtter[V any](capacity int64, names []string, value V, size func(V) int) func() bool {
	o := otter.Must(&otter.Options[string, V]{
		MaximumWeight: uint64(capacity / weightUnit),
		Weigher:       func(string, V) uint32 { return uint32(size(value) / weightUnit) },
	})
	for _, n := range names {
		o.Set(n, value)
	}
	return func() bool {
		for range passes {
			for _, n := range names {
				if v, ok := o.GetIfPresent(n); !ok || size(v) != 4<<10 {
					return false
				}
			}
		}
		return true
	}
}

// readsOf returns a turn of reads of c.
func readsOf(ctx context.Context, c *Cache, names []string, opts *blob.GetOptions, size int) func() bool {
	return func() bool {
		for range passes {
			for _, n := range names {
				if o, err := c.Get(ctx, n, opts); err != nil || len(o.Data) != size {
					return false
				}
			}
		}
		return true
	}
}

// turns lets the ways take turns, each done by so many goroutines at once, and returns the medians of what a turn took, in nanoseconds.
func turns(b *testing.B, readers int, ways []func() bool) []float64 {
	took := make([][]time.Duration, len(ways))
	var failed atomic.Bool
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := (i + j) % len(ways) // each comes after each other
			var wg sync.WaitGroup
			start := time.Now()
			for range readers - 1 {
				wg.Go(func() {
					if !ways[w]() {
						failed.Store(true)
					}
				})
			}
			ok := ways[w]()
			wg.Wait()
			took[w] = append(took[w], time.Since(start))
			if !ok || failed.Load() {
				b.Fatal("a miss")
			}
		}
	}
	medians := make([]float64, len(ways))
	for w, d := range took {
		slices.Sort(d)
		medians[w] = float64(d[len(d)/2])
	}
	return medians
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
	heaviest := uint32(0)
	for _, k := range keys {
		info, err := inner.Set(t.Context(), k, blob.Bytes(make([]byte, size)), nil)
		if err != nil {
			t.Fatal(err)
		}
		heaviest = max(heaviest, weigh(0, &item{obj: blob.Object{Info: info, Data: make([]byte, size)}}))
	}
	c := over(t, inner, Options{Memory: fit * int64(heaviest) * weightUnit, NoWriteThrough: true})
	defer mustClose(t, c)
	for _, k := range keys {
		get(t, c, k)
	}
	ours := c.Stats().MemoryHits
	t.Logf("hits of %d: otter alone %d, cache %d", len(keys), alone, ours)
	if ours < int64(alone) {
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
