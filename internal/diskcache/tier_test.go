package diskcache

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wholeblob/wholeblob/blob"
	"github.com/wholeblob/wholeblob/internal/diskcache/tiertest"
)

// testTier opens a tier and closes it with the test; nothing may be left running then.
func testTier(t testing.TB, dir string, o Options) *Tier {
	t.Helper()
	if o.Size == 0 {
		o.Size = 64 << 20
	}
	ignore := goleak.IgnoreCurrent()
	d, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil && o.Fault == nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, ignore)
	})
	return d
}

func closeTier(t testing.TB, d *Tier) {
	t.Helper()
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// settle waits until nothing is queued, found damaged or to be evicted.
func settle(t testing.TB, d *Tier) {
	t.Helper()
	tiertest.WaitFor(t, "the queue to drain", func() bool { return d.queue.size() == 0 })
	d.removeCondemned()
	d.evict()
}

func testInfo(key, version string, size int) blob.Info {
	return blob.Info{
		Key: key, Version: version, Size: int64(size), ModTime: time.Unix(1700000000, 123456789).UTC(),
		Metadata: map[string]string{"owner": "tests", "empty": ""}, ContentType: "text/plain", CRC32C: 7, HasCRC32C: true,
	}
}

func mustPut(t testing.TB, d *Tier, info blob.Info, off int64, data []byte) {
	t.Helper()
	if !d.Put(info, off, data) {
		t.Fatalf("put %q at %d was skipped: %+v", info.Key, off, d.Stats())
	}
	settle(t, d)
}

func wantHit(t testing.TB, d *Tier, info blob.Info, off int64, want []byte) {
	t.Helper()
	dst := make([]byte, len(want))
	if !d.Read(info.Key, info.Version, off, dst) {
		t.Fatalf("read %q [%d, +%d) missed: %+v", info.Key, off, len(want), d.Stats())
	}
	if !bytes.Equal(dst, want) {
		t.Fatalf("read %q [%d, +%d) gave other bytes", info.Key, off, len(want))
	}
}

func wantMiss(t testing.TB, d *Tier, info blob.Info, off int64, n int) {
	t.Helper()
	if d.Read(info.Key, info.Version, off, make([]byte, n)) {
		t.Fatalf("read %q [%d, +%d) hit", info.Key, off, n)
	}
}

// entryFiles returns the paths of the entries in dir.
func entryFiles(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if _, ok := parseName(filepath.Base(path)); ok {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestDiskKeepsWhatWasPut(t *testing.T) {
	for _, size := range []int{0, 1, 511, 4095, 4096, 4097, 65535, 65536, 1<<20 + 17} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			d := testTier(t, dir, Options{})
			data, info := tiertest.Bytes(1, size), testInfo("k", "v1", size)
			mustPut(t, d, info, 0, data)
			check := func(d *Tier) {
				got, ok := d.Lookup("k")
				if !ok || fmt.Sprint(got) != fmt.Sprint(info) {
					t.Fatalf("lookup: %v %+v, want %+v", ok, got, info)
				}
				wantHit(t, d, info, 0, data)
				for range 50 {
					off := rand.IntN(size + 1)
					if size > 0 && off == size {
						off--
					}
					wantHit(t, d, info, int64(off), data[off:off+rand.IntN(size-off+1)])
				}
				wantMiss(t, d, info, 0, size+1)
				wantMiss(t, d, testInfo("k", "v2", size), 0, size)
				wantMiss(t, d, testInfo("other", "v1", size), 0, size)
			}
			check(d)
			closeTier(t, d)
			check(testTier(t, dir, Options{}))
		})
	}
}

func TestDiskRunsBesideEachOtherAreOneRead(t *testing.T) {
	d := testTier(t, t.TempDir(), Options{})
	const block = 64 << 10
	data := tiertest.Bytes(2, 3*block+100)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 2*block, data[2*block:])
	mustPut(t, d, info, 0, data[:block])
	wantMiss(t, d, info, block-1, 2)
	mustPut(t, d, info, block, data[block:2*block])
	wantHit(t, d, info, 0, data)
	wantHit(t, d, info, block-1, data[block-1:2*block+1])
	d.Drop("k")
	mustPut(t, d, info, 0, data[:block])
	mustPut(t, d, info, 2*block, data[2*block:])
	mustPut(t, d, info, 0, data)
	if s := d.Stats(); s.Entries != 1 {
		t.Errorf("%d entries after the whole object replaced its runs", s.Entries)
	}
	wantHit(t, d, info, 0, data)
	fills := d.Stats().Fills
	mustPut(t, d, info, block, data[block:2*block])
	if s := d.Stats(); s.Fills != fills {
		t.Errorf("what is there already was written again")
	}
}

func TestDiskHoldsOneVersionOfAKey(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	one, two := tiertest.Bytes(3, 5000), tiertest.Bytes(4, 6000)
	mustPut(t, d, testInfo("k", "v1", 5000), 0, one)
	mustPut(t, d, testInfo("k", "v2", 6000), 0, two)
	wantMiss(t, d, testInfo("k", "v1", 5000), 0, 1)
	wantHit(t, d, testInfo("k", "v2", 6000), 0, two)
	if files := entryFiles(t, dir); len(files) != 1 {
		t.Errorf("files of two versions: %v", files)
	}
}

func TestDiskTellsOfOtherVersions(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	want := func(version string, other bool) {
		t.Helper()
		if got := d.Other("k", version); got != other {
			t.Errorf("another version than %q: %v", version, got)
		}
	}
	want("v1", false)
	mustPut(t, d, testInfo("k", "v1", 5000), 0, tiertest.Bytes(1, 5000))
	want("v1", false)
	want("v2", true)
	closeTier(t, d)
	d = testTier(t, dir, Options{})
	want("v2", true) // before anything was looked for
	want("v1", false)
	d.Drop("k")
	want("v2", false)
}

// Of what was put without a ModTime the tier says what it learned since, for as long as it has the object, and this process lives.
func TestDiskLearnsWhatWasNotSaid(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	all := testInfo("k", "v1", 5000)
	little := blob.Info{Key: "k", Version: "v1", Size: 5000}
	want := func(info blob.Info) {
		t.Helper()
		if got, ok := d.Lookup("k"); !ok || !got.ModTime.Equal(info.ModTime) || got.Size != 5000 || len(got.Metadata) != len(info.Metadata) {
			t.Errorf("%+v, want %+v", got, info)
		}
	}
	d.Learn(all) // of what it does not have
	mustPut(t, d, little, 0, tiertest.Bytes(1, 5000))
	want(little)
	other := all
	other.Version = "v2"
	d.Learn(other)
	d.Learn(little)
	want(little)
	d.Learn(all)
	want(all)
	closeTier(t, d)
	d = testTier(t, dir, Options{})
	d.Learn(all) // nobody has looked yet, so nobody misses it
	want(little)
	d.Learn(all)
	want(all)
	d.Drop("k")
	mustPut(t, d, little, 0, tiertest.Bytes(1, 5000))
	want(little)
	d.Drop("k")
	mustPut(t, d, all, 0, tiertest.Bytes(1, 5000))
	later := all
	later.ModTime = later.ModTime.Add(time.Hour)
	d.Learn(later) // the header says it all
	want(all)
}

func TestDiskKeepsTimesAsTheyAreOrNotAtAll(t *testing.T) {
	d := testTier(t, t.TempDir(), Options{})
	for _, year := range []int{1, 1677, 1678, 1969, 2262, 2263, 9999, 100_000} {
		info := testInfo(fmt.Sprint(year), "v", 1000)
		info.ModTime = time.Date(year, 1, 2, 3, 4, 5, 678, time.UTC)
		mustPut(t, d, info, 0, tiertest.Bytes(1, 1000))
		got, ok := d.Lookup(info.Key)
		if !ok || !got.ModTime.IsZero() && !got.ModTime.Equal(info.ModTime) || got.ModTime.IsZero() == (year > 1677 && year < 2263) {
			t.Errorf("%v is kept as %v, found %t", info.ModTime, got.ModTime, ok)
		}
	}
}

func TestDiskRefusesRunsThatDoNotFitTheObject(t *testing.T) {
	d := testTier(t, t.TempDir(), Options{Size: 1 << 20})
	for _, c := range []struct {
		name   string
		size   int
		off    int64
		length int
	}{
		{"past the end", 10000, 8192, 4096},
		{"beyond the end", 10000, 12288, 4096},
		{"negative offset", 10000, -4096, 4096},
		{"unaligned start", 10000, 100, 9900},
		{"short in the middle", 10000, 0, 5000},
		{"empty run", 10000, 0, 0},
		{"longer than the object", 10, 0, 11},
		{"too large for the tier", 1 << 20, 0, 1 << 20},
	} {
		if d.Put(testInfo("k", "v", c.size), c.off, make([]byte, c.length)) {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if s := d.Stats(); s.SkippedFills != 8 || s.Entries != 0 || s.QueuedBytes != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDiskDropForgetsAtOnceAndAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	d := testTier(t, dir, Options{})
	data := tiertest.Bytes(5, 100_000)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	wantHit(t, d, info, 0, data) // its file is open now
	d.Drop("k")
	wantMiss(t, d, info, 0, 1)
	if _, ok := d.Lookup("k"); ok {
		t.Error("found after drop")
	}
	if files := entryFiles(t, dir); len(files) != 0 {
		t.Errorf("left: %v", files)
	}
	mustPut(t, d, info, 0, data)
	closeTier(t, d)
	d = testTier(t, dir, Options{})
	d.Drop("k") // before anything was looked for
	wantMiss(t, d, info, 0, 1)
	closeTier(t, d)
	wantMiss(t, testTier(t, dir, Options{}), info, 0, 1)
}

// A drop must win wherever the fill is: queued, written, about to be published.
func TestDiskDropCancelsAPutAtEveryStep(t *testing.T) {
	for _, op := range []string{"create", "write", "close", "rename"} {
		t.Run(op, func(t *testing.T) {
			reached, goOn := make(chan struct{}), make(chan struct{})
			armed := make(chan struct{}, 1)
			dir := t.TempDir()
			d := testTier(t, dir, Options{Fault: func(o, name string) error {
				if o == op && (strings.HasPrefix(name, tempPrefix) || o == "rename") {
					select {
					case <-armed:
						close(reached)
						<-goOn
					default:
					}
				}
				return nil
			}})
			data := tiertest.Bytes(6, 10_000)
			info := testInfo("k", "v", len(data))
			armed <- struct{}{}
			if !d.Put(info, 0, data) {
				t.Fatal("skipped")
			}
			<-reached
			if d.Other("k", "v") || !d.Other("k", "another") {
				t.Error("what is on its way is not told of")
			}
			dropped := make(chan struct{})
			go func() {
				d.Drop("k")
				close(dropped)
			}()
			if op == "rename" { // drop waits for it: let it
				close(goOn)
				<-dropped
			} else {
				<-dropped
				close(goOn)
			}
			settle(t, d)
			wantMiss(t, d, info, 0, 1)
			if files := entryFiles(t, dir); len(files) != 0 {
				t.Errorf("left: %v", files)
			}
		})
	}
}

func TestDiskSkipsFillsWhenTheQueueIsFull(t *testing.T) {
	var armed atomic.Bool
	goOn := make(chan struct{})
	d := testTier(t, t.TempDir(), Options{queue: 64 << 10, Fault: func(op, _ string) error {
		if op == "create" && armed.Load() {
			<-goOn
		}
		return nil
	}})
	armed.Store(true)
	data := tiertest.Bytes(9, 20_000)
	var kept []blob.Info
	for i := range 10 {
		if info := testInfo(fmt.Sprint(i), "v", len(data)); d.Put(info, 0, data) {
			kept = append(kept, info)
		}
	}
	if s := d.Stats(); len(kept) != 3 || s.SkippedFills != 7 || s.QueuedBytes > 64<<10 {
		t.Errorf("%d accepted: %+v", len(kept), s)
	}
	close(goOn)
	settle(t, d)
	for _, info := range kept {
		wantHit(t, d, info, 0, data)
	}
	if s := d.Stats(); s.QueuedBytes != 0 || s.Fills != 3 {
		t.Errorf("%+v", s)
	}
}

func TestDiskEvictsByBytesAndKeepsWhatIsRead(t *testing.T) {
	const size = 1 << 20
	d := testTier(t, t.TempDir(), Options{Size: size})
	tiertest.WaitFor(t, "the index", func() bool { return d.Stats().Indexed })
	data := tiertest.Bytes(7, 10_000)
	hot := testInfo("hot", "v", len(data))
	mustPut(t, d, hot, 0, data)
	least := int64(size) // once something had to go
	for i := range 500 {
		mustPut(t, d, testInfo(fmt.Sprintf("cold%d", i), "v", len(data)), 0, data)
		wantHit(t, d, hot, 0, data)
		if s := d.Stats(); s.Bytes > size {
			t.Fatalf("%d bytes in a tier of %d", s.Bytes, size)
		} else if s.Evictions > 0 {
			least = min(least, s.Bytes)
		}
	}
	if least > size*95/100 {
		t.Errorf("never below %d bytes: evictions run for every entry", least)
	}
	s := d.Stats()
	if s.Bytes < size*9/10 || s.Evictions == 0 || s.Evictions+s.Entries != 501 {
		t.Errorf("%+v", s)
	}
}

func TestDiskReadersOfAnEvictedFileAreSafe(t *testing.T) {
	d := testTier(t, t.TempDir(), Options{})
	data := tiertest.Bytes(8, 1<<20)
	info := testInfo("k", "v", len(data))
	mustPut(t, d, info, 0, data)
	g := d.gen.Load()
	hash := hashKey("k")
	r, _ := g.shard(hash).any(hash)
	h, _ := d.acquire(g, g.shard(hash), r)
	d.Drop("k")
	dst := make([]byte, len(data))
	if err := d.readAt(h, 0, dst); err != nil || !bytes.Equal(dst, data) {
		t.Errorf("a reader lost its file: %v", err)
	}
	d.handles.release(h)
	if _, err := h.file.Stat(); err == nil {
		t.Error("the file stays open")
	}
}

func TestDiskOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{}, {Size: -1}, {Size: 1 << 20, queue: -1}, {Size: 1 << 20, sumBlock: 1000}, {Size: 1 << 20, sumBlock: 256}} {
		if _, err := Open(t.TempDir(), o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{Size: 1 << 20}); err == nil {
		t.Error("a file taken for a directory")
	}
}
