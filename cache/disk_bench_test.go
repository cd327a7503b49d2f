package cache

import (
	"context"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/memblob"
)

// A hit of 1 MiB should take at most 1/0.9 of what reading and summing the same bytes into the same buffer takes. The three take turns, since the
// machine is not equally fast for long: what counts are the ratios of their medians, with the tier alone and through all of a Get.
func BenchmarkDiskHit1MiB(b *testing.B) {
	const size = 1 << 20
	dir, data, dst := b.TempDir(), diskBytes(1, size), make([]byte, size)
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
	diskPut(b, c.disk, diskInfo("k", "v", size), 0, data)
	opts := &blob.GetOptions{Dst: dst}
	ways := []func() bool{
		func() bool {
			n, err := f.ReadAt(dst, 0)
			return n == size && err == nil && crc32.Checksum(dst, table) == want
		},
		func() bool { return c.disk.read("k", "v", 0, dst) },
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

// What it saves to keep files open: a small read of an open entry, and of one that must be opened and its header read.
func BenchmarkDiskHit4KiB(b *testing.B) {
	d := testDisk(b, b.TempDir(), diskOptions{})
	data := diskBytes(1, 1<<20)
	diskPut(b, d, diskInfo("k", "v", len(data)), 0, data)
	dst := make([]byte, 4096)
	for _, c := range []struct {
		name string
		off  int64
		open bool
	}{{"aligned", 8192, true}, {"unaligned", 10_000, true}, {"opened each time", 8192, false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.open {
					d.handles.clear(false)
				}
				if !d.read("k", "v", c.off, dst) {
					b.Fatal("miss")
				}
			}
		})
	}
}

// A restart with 100,000 entries: time to the first hit, time until all are found, memory per entry.
func BenchmarkDiskIndex100000(b *testing.B) {
	const entries = 100_000
	dir := b.TempDir()
	d := testDisk(b, dir, diskOptions{size: 4 << 30})
	data := diskBytes(1, 100)
	for i := range entries {
		for !d.put(diskInfo(fmt.Sprint("key", i), "v", len(data)), 0, data) {
			settleDisk(b, d)
		}
	}
	settleDisk(b, d)
	closeDisk(b, d)
	dst := make([]byte, len(data))
	open := func() *disk {
		d, err := openDisk(dir, diskOptions{size: 4 << 30})
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	b.Run("names and sizes alone", func(b *testing.B) { // what a program that keeps nothing of it takes
		for b.Loop() {
			found := 0
			err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					_, err = e.Info()
					found++
				}
				return err
			})
			if err != nil || found < entries {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("first hit", func(b *testing.B) {
		indexed := 0
		for b.Loop() {
			d := open()
			if !d.read("key777", "v", 0, dst) {
				b.Fatal("miss")
			}
			b.StopTimer()
			if d.stats().Indexed {
				indexed++
			}
			_ = d.close(context.Background())
			b.StartTimer()
		}
		b.ReportMetric(float64(indexed)/float64(b.N), "indexed-by-then")
	})
	b.Run("all", func(b *testing.B) {
		var before, after runtime.MemStats
		for b.Loop() {
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.StartTimer()
			d := open()
			diskWait(b, "the index", func() bool { return d.stats().Indexed })
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			if n := d.stats().Entries; n != entries {
				b.Fatalf("%d entries", n)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/entries, "B/entry")
			_ = d.close(context.Background())
			b.StartTimer()
		}
	})
}

// The first hit does not wait for the scan of the whole directory, and the tier is right about the rest while it goes on.
func TestDiskServesHitsWhileItIndexes(t *testing.T) {
	dir := t.TempDir()
	d := testDisk(t, dir, diskOptions{})
	data := diskBytes(1, 10_000)
	info := diskInfo("k", "v", len(data))
	diskPut(t, d, info, 0, data)
	closeDisk(t, d)
	goOn, shard := make(chan struct{}), fmt.Sprintf("%02x", hashDiskKey("k")[0])
	d = testDisk(t, dir, diskOptions{fault: func(op, name string) error {
		if op == "opendir" && len(name) == 2 && name != shard {
			<-goOn
		}
		return nil
	}})
	defer close(goOn)
	diskHit(t, d, info, 0, data)
	if got, ok := d.lookup("k"); !ok || got.Version != "v" {
		t.Errorf("lookup: %v %+v", ok, got)
	}
	if d.stats().Indexed {
		t.Error("already indexed: this test shows nothing")
	}
}
