package cache

import (
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
	"github.com/wholeblob/wholeblob/memblob"
)

// A hit of 1 MiB should take at most 1/0.9 of what reading and summing the same bytes into the same buffer takes. The three take turns, since the
// machine is not equally fast for long: what counts are the ratios of their medians, with the tier alone and through all of a Get.
func BenchmarkDiskHit1MiB(b *testing.B) {
	const size = 1 << 20
	dir, data, dst := b.TempDir(), tiertest.Bytes(1, size), make([]byte, size)
	f, err := os.Create(filepath.Join(dir, "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(data); err != nil {
		b.Fatal(err)
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	want := crc32.Checksum(data, table)
	c, err := New(b.Context(), memblob.New(nil), &Options{Memory: -1, Dir: filepath.Join(dir, "cache"), Disk: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	c.disk.Put(blob.Info{Key: "k", Version: "v", Size: size, ModTime: time.Unix(1, 0)}, 0, data)
	written(b, c.disk)
	opts := &blob.GetOptions{Dst: dst}
	ways := []func() bool{
		func() bool {
			n, err := f.ReadAt(dst, 0)
			return n == size && err == nil && crc32.Checksum(dst, table) == want
		},
		func() bool { return c.disk.Read("k", "v", 0, dst) },
		func() bool { o, err := c.Get(b.Context(), "k", opts); return err == nil && len(o.Data) == size },
	}
	var took [3][]time.Duration
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := (i + j) % len(ways) // each comes after each other
			start := time.Now()
			if !ways[w]() {
				b.Fatal("a miss, or other bytes")
			}
			took[w] = append(took[w], time.Since(start))
		}
	}
	median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
	base := median(took[0])
	b.ReportMetric(base/median(took[1]), "tier/plain")
	b.ReportMetric(base/median(took[2]), "Get/plain")
	b.ReportMetric(base, "plain-ns")
	if s := c.Stats(); s.Fetches != 0 {
		b.Fatal("the store was asked")
	}
}
