package cache

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/wholeblob/wholeblob/blob"
)

// zeros is a store of objects of equal size that counts what is asked of it. All share their bytes.
type zeros struct {
	blob.Blob
	data            []byte
	requests, bytes atomic.Int64
}

func (z *zeros) Capabilities() blob.Capabilities { return blob.Capabilities{Store: "zeros"} }

func (z *zeros) Close(context.Context) error { return nil }

func (z *zeros) Get(_ context.Context, key string, o *blob.GetOptions) (blob.Object, error) {
	off, n, err := o.Range.Resolve(int64(len(z.data)))
	z.requests.Add(1)
	z.bytes.Add(n)
	return blob.Object{Info: blob.Info{Key: key, Version: "1", Size: int64(len(z.data))}, Offset: off, Data: z.data[off : off+n : off+n]}, err
}

// at is a range of an object.
type at struct {
	object int
	off, n int64
}

// pages are objects cut into ranges of 4 to 64 KiB, small ones as likely as large ones: the pages of a column, the blocks of a sorted table.
func pages(rnd *rand.Rand, objects int, size int64) (all []at) {
	for i := range objects {
		for off := int64(0); off < size; {
			n := min(int64(4096*math.Pow(16, rnd.Float64())), size-off)
			all = append(all, at{i, off, n})
			off += n
		}
	}
	return all
}

// blockTraces are ways to read pages. All are Zipf-distributed with an exponent of 1.1; the difference is what is hot, and what comes next.
var blockTraces = map[string]func(rnd *rand.Rand, all []at, objects int) func() at{
	// Pages, and no two hot ones beside each other: rows that are looked up by key.
	"pages": func(rnd *rand.Rand, all []at, _ int) func() at {
		place, zipf := rnd.Perm(len(all)), rand.NewZipf(rnd, 1.1, 1, uint64(len(all)-1))
		return func() at { return all[place[zipf.Uint64()]] }
	},
	// Objects, and within them everything alike: recent files.
	"objects": func(rnd *rand.Rand, all []at, objects int) func() at {
		zipf := rand.NewZipf(rnd, 1.1, 1, uint64(objects-1))
		return func() at {
			of := int(zipf.Uint64()) * len(all) / objects // about: some lie in the one beside it
			return all[of+rnd.IntN(len(all)/objects)]
		}
	},
	// Pages, and the seven after each: ranges of rows.
	"runs": func(rnd *rand.Rand, all []at, _ int) func() at {
		place, zipf := rnd.Perm(len(all)), rand.NewZipf(rnd, 1.1, 1, uint64(len(all)-1))
		next, left := 0, 0
		return func() at {
			if left--; left < 0 || next == len(all) {
				next, left = place[zipf.Uint64()], 7
			}
			next++
			return all[next-1]
		}
	},
}

// BenchmarkBlock reads small ranges of 128 objects of 4 MiB with memory for a tenth of them, in blocks of several sizes, and models what that costs over a
// store that sends the first byte after 10 ms and then 90 MiB/s. What is counted are requests and bytes, after as many reads that are not
// counted; so the result does not depend on the machine.
func BenchmarkBlock(b *testing.B) {
	const objects, size, reads = 128, 4 << 20, 30_000
	for _, name := range []string{"pages", "objects", "runs"} {
		for _, unit := range []int64{0, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, unit>>10), func(b *testing.B) {
				for b.Loop() {
					z := &zeros{data: make([]byte, size)}
					c, err := New(b.Context(), z, &Options{Memory: objects * size / 10, Block: unit, Off: unit == 0})
					if err != nil {
						b.Fatal(err)
					}
					rnd := rand.New(rand.NewPCG(1, 2))
					next := blockTraces[name](rnd, pages(rnd, objects, size), objects)
					asked := int64(0)
					var before Stats
					for i := range 2 * reads {
						if i == reads {
							z.requests.Store(0)
							z.bytes.Store(0)
							asked, before = 0, c.Stats()
						}
						p := next()
						asked += p.n
						if _, err := c.Get(b.Context(), fmt.Sprint(p.object), &blob.GetOptions{Range: blob.Span(p.off, p.n)}); err != nil {
							b.Fatal(err)
						}
					}
					requests, bytes := float64(z.requests.Load()), float64(z.bytes.Load())
					b.ReportMetric(float64(c.Stats().MemoryHits-before.MemoryHits)/reads, "hits")
					b.ReportMetric(requests/reads, "requests/read")
					b.ReportMetric(bytes/float64(asked), "fetched/asked")
					b.ReportMetric((requests*10+bytes/(90<<20)*1000)/reads, "ms/read")
					if err := c.Close(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
