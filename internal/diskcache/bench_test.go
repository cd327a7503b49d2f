package diskcache

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// What it saves to keep files open: a small read of an open entry, and of one that must be opened and its header read.
func BenchmarkDiskHit4KiB(b *testing.B) {
	d := testTier(b, b.TempDir(), Options{})
	data := tiertest.Bytes(1, 1<<20)
	mustPut(b, d, testInfo("k", "v", len(data)), 0, data)
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
				if !d.Read("k", "v", c.off, dst) {
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
	d := testTier(b, dir, Options{Size: 4 << 30})
	data := tiertest.Bytes(1, 100)
	for i := range entries {
		for !d.Put(testInfo(fmt.Sprint("key", i), "v", len(data)), 0, data) {
			settle(b, d)
		}
	}
	settle(b, d)
	closeTier(b, d)
	dst := make([]byte, len(data))
	open := func() *Tier {
		d, err := Open(dir, Options{Size: 4 << 30})
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
			if !d.Read("key777", "v", 0, dst) {
				b.Fatal("miss")
			}
			b.StopTimer()
			if d.Stats().Indexed {
				indexed++
			}
			_ = d.Close(context.Background())
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
			tiertest.WaitFor(b, "the index", func() bool { return d.Stats().Indexed })
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			if n := d.Stats().Entries; n != entries {
				b.Fatalf("%d entries", n)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/entries, "B/entry")
			_ = d.Close(context.Background())
			b.StartTimer()
		}
	})
}

// The first hit does not wait for the scan of the whole directory, and the tier is right about the rest while it goes on.
func TestDiskServesHitsWhileItIndexes(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(1, 10_000)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	closeTier(t, d)
	goOn, shard := make(chan struct{}), fmt.Sprintf("%02x", hashKey("k")[0])
	d = testTier(t, dir, Options{Fault: func(op, name string) error {
		if op == "opendir" && len(name) == 2 && name != shard {
			<-goOn
		}
		return nil
	}})
	defer close(goOn)
	wantHit(t, d, info, 0, data)
	if got, ok := d.Lookup("k"); !ok || got.Version != "v" {
		t.Errorf("lookup: %v %+v", ok, got)
	}
	if d.Stats().Indexed {
		t.Error("already indexed: this test shows nothing")
	}
}
